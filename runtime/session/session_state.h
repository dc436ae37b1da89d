// What a Session holds: its model and small caches of recorded passes, least recently used last.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <utility>

#include "generate/pass_rows.h"
#include "generate/prefix_cache.h"
#include "session/sliced_run.h"

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
  // The same with the logits of each row's last token alone, (B,V), where the family can
  // (ForwardTaps::last_logits), else of all tokens (B,T,V).
  Result<TensorMap> run_last(const TensorMap& inputs);
  GenerateOptions generation_defaults() const {
    return vkformer::generation_defaults(model_->family());
  }
  Result<Generation> generate(const TensorMap& inputs, const GenerateOptions& options);
  const GenerationCounters& counters() const { return counters_; }
  Result<std::vector<std::vector<float>>> score(
      const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations);

  // A pass that advance and record carry out; tensors named in `places` lie in buffers of the
  // application.
  Status start(const TensorMap& inputs, const RunOptions& options,
               const std::map<std::string, TensorPlace>& places);
  // The same, whose pixel_values are images, made as `settings` say.
  Status start_on_images(TensorMap inputs, const RunOptions& options,
                         std::map<std::string, TensorPlace> places,
                         const std::vector<SourceImage>& images, const PictureSettings& settings);
  Status start_generation(const TensorMap& inputs, const GenerateOptions& options);
  // Of what was started (sliced_run.h).
  SlicedRun& sliced() { return sliced_; }
  // Drops recordings on buffers of the application.
  Status forget_buffers();

 private:
  SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options)
      : model_(std::move(model)), options_(options), prefixes_(model_), sliced_(model_->device()) {}
  Result<std::shared_ptr<ImageInputs>> image_inputs(const ImageInputsKey& key);
  // The recording for these inputs, which `read` then holds.
  Result<std::shared_ptr<ForwardPass>> pass_for(const TensorMap& inputs, const RunOptions& options,
                                                const std::map<std::string, TensorPlace>& places,
                                                ForwardInputs& read, ForwardTaps::Tap last_logits);
  // Runs the second pass of a family that has one, and adds its outputs.
  Status run_second(const TensorMap& inputs, TensorMap& outputs);
  bool give_way(const Result<uint64_t>& wanted_bytes);
  Result<std::shared_ptr<ForwardPass>> forward_pass(const ForwardKey& key);
  Result<std::shared_ptr<DecodeStep>> decode_step(const GenerationKey& key);
  // This session's full passes, for what is computed by them instead of steps.
  RunPass passes();
  // The same of recorded steps.
  StepForKey steps();
  // Checks a generation, and counts anew.
  Status begin_generation(const GenerateOptions& options);
  Result<std::vector<GenerationJob>> jobs_of(const TensorMap& inputs,
                                             const GenerateOptions& options);

  std::shared_ptr<const LoadedModel> model_;
  const SessionOptions options_;
  std::list<std::shared_ptr<ForwardPass>> forward_;
  std::list<std::shared_ptr<DecodeStep>> steps_;
  std::list<std::shared_ptr<ImageInputs>> images_;
  PrefixCache prefixes_;
  GenerationCounters counters_;
  std::atomic<bool> busy_{false};
  // After the passes, whose recordings its slices may still run.
  SlicedRun sliced_;
};

}  // namespace vkformer
