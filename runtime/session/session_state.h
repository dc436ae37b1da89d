// What a Session holds: its model and small caches of recorded passes, least recently used last.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "generate/generation_sizes.h"
#include "session/forward_pass.h"
#include "session/image_inputs.h"
#include "vkformer/generation_batch.h"

namespace vkformer {

class SessionState {
 public:
  static Result<std::unique_ptr<SessionState>> create(std::shared_ptr<const LoadedModel> model,
                                                      const SessionOptions& options);

  // Held during every call: a second thread gets an error instead of a race.
  class Turn {
   public:
    explicit Turn(std::atomic<bool>& busy) : busy_(&busy) {}
    Turn(Turn&& other) noexcept : busy_(std::exchange(other.busy_, nullptr)) {}
    Turn& operator=(Turn&& other) = delete;
    ~Turn() {
      if (busy_) busy_->store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>* busy_;
  };
  Result<Turn> turn();

  Result<TensorMap> run(const TensorMap& inputs, const RunOptions& options);
  GenerateOptions generation_defaults() const {
    return vkformer::generation_defaults(model_->family());
  }
  Result<Generation> generate(const TensorMap& inputs, const GenerateOptions& options);
  const GenerationCounters& counters() const { return counters_; }
  Result<std::vector<std::vector<float>>> score(
      const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations);
  std::vector<DispatchTime> last_profile() const;

  // A pass that advance and record carry out; tensors named in `places` lie in buffers of the
  // application.
  Status start(const TensorMap& inputs, const RunOptions& options,
               const std::map<std::string, TensorPlace>& places);
  // The same, whose pixel_values are images, made as `settings` say.
  Status start_on_images(TensorMap inputs, const RunOptions& options,
                         std::map<std::string, TensorPlace> places,
                         const std::vector<SourceImage>& images, const PictureSettings& settings);
  Status start_generation(const TensorMap& inputs, const GenerateOptions& options);
  Result<Advance> advance(double microseconds, const SubmitSemaphores& semaphores);
  Result<Advance> record(VkCommandBuffer_T* commands, double microseconds);
  Result<TensorMap> finish();
  Result<Generation> finish_generation();
  Status cancel();
  // Drops recordings on buffers of the application.
  Status forget_buffers();
  // Tensors of the pass that was started, by name.
  Result<std::map<std::string, PassTensor>> started_tensors() const;

 private:
  SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options)
      : model_(std::move(model)), options_(options) {}
  // Inputs of a generation that run together.
  struct GenerationJob {
    std::shared_ptr<GenerationPass> pass;
    GenerationInputs inputs;
    int64_t new_tokens = 0;
  };
  // What was started: a pass with its words, or the jobs of a generation, one after the other.
  struct Started {
    std::shared_ptr<ForwardPass> pass;
    FeedWords words;
    std::shared_ptr<ImageInputs> images;  // or null
    GenerateOptions options;
    std::vector<GenerationJob> jobs;
    size_t job = 0;  // the current one
    // Shares of its steps: those that have run, and those that are being submitted.
    double before = 0, share = 0;
    Generation generation;
  };
  Status make_sliced();
  // A pass, whose pixel values are made of images where there are some.
  Status start_pass(const TensorMap& inputs, const RunOptions& options,
                    const std::map<std::string, TensorPlace>& places,
                    std::shared_ptr<ImageInputs> images, std::vector<SliceImage> copies);
  // The slices of a pass, behind copies of images.
  Status begin_pass(std::vector<SliceImage> copies);
  Result<std::shared_ptr<ImageInputs>> image_inputs(const ImageInputsKey& key);
  Status begin_job();
  // The next steps of the current job; false where none is left.
  Result<bool> begin_steps();
  // Ends a job whose rows are all finished and begins the next.
  Status follow_jobs();
  Status follow_job();
  Advance with_jobs(Advance advance) const;
  Status wait_for_slices();
  Status check_idle() const;
  Status check_advance(double microseconds) const;
  // The recording for these inputs, which `read` then holds.
  Result<std::shared_ptr<ForwardPass>> pass_for(const TensorMap& inputs, const RunOptions& options,
                                                const std::map<std::string, TensorPlace>& places,
                                                ForwardInputs& read);
  bool give_way(const Result<uint64_t>& wanted_bytes);
  Result<std::shared_ptr<ForwardPass>> forward_pass(const ForwardKey& key);
  Result<std::shared_ptr<GenerationPass>> generation_pass(const GenerationKey& key);
  // Whether a generation runs in rows that keep their keys, and makes them (session_kept.cpp).
  bool keeps_texts(const GenerateOptions& options) const;
  Status make_kept(int64_t rows, int64_t tokens, const GenerateOptions& options);
  struct KeptCall;
  Status run_kept(KeptCall& call);
  Result<Generation> generate_kept(const TensorMap& inputs, const GenerateOptions& options);
  Status check_generate(const GenerateOptions& options) const;
  GenerateOptions scoring_options() const;
  // Rows of different lengths run apart where prompts are exact, so that a row is generated as it
  // is alone.
  Result<std::vector<GenerationJob>> plan_generation(const TensorMap& inputs,
                                                     const GenerateOptions& options);
  Result<Generation> generate_contrastive(const TensorMap& inputs, const GenerateOptions& options);
  // Of the encoder's inputs, if there are some, and a prompt.
  Result<Hypothesis> contrast_one(const TensorMap& source, const std::vector<int64_t>& prompt,
                                  size_t input, const GenerateOptions& options, int64_t new_tokens);
  Result<GenerationJob> plan_job(GenerationInputs read, GenerationKey key,
                                 const GenerateOptions& options);

  std::shared_ptr<const LoadedModel> model_;
  SessionOptions options_;
  std::list<std::shared_ptr<ForwardPass>> forward_;
  std::list<std::shared_ptr<GenerationPass>> generation_;
  std::list<std::shared_ptr<ImageInputs>> images_;
  struct KeptRows {
    std::shared_ptr<BatchState> batch;  // or null
    BatchOptions options;
  } kept_;
  GenerationCounters counters_;
  std::atomic<bool> busy_{false};
  std::optional<Started> started_;
  // After the passes, whose recordings its slices may still run.
  std::unique_ptr<SlicedWork> sliced_;
};

// Puts each of `from` where `items` says in `to`, which grows.
void scatter(Generation& from, const std::vector<size_t>& items, Generation& to);
// Of items that are sequences or beam groups of an input, the sequences of each input.
Generation by_input(Generation items, const GenerateOptions& options);

}  // namespace vkformer
