// What a Session holds: its model and small caches of recorded passes, least recently used last.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "generate/contrastive_search.h"
#include "generate/pass_rows.h"
#include "generate/prefix_cache.h"
#include "session/pass_cache.h"
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
  // (ForwardTaps::last_logits). Else the logits are those of all tokens, (B,T,V).
  Result<TensorMap> run_last(const TensorMap& inputs);
  // The same with the scaled scores of cross-attention of some layers (ForwardTaps::cross_layers).
  Result<TensorMap> run_cross_scores(const TensorMap& inputs, std::vector<int64_t> layers);
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
  // What sizes need, without starting anything.
  Status warm_up(const SessionSizes& sizes);
  Result<double> warmed_up();
  Status finish_warm_up();
  Result<FrameEstimate> estimate(const SessionSizes& sizes, double microseconds) const;

  // The next slice of what was started, once it is prepared.
  Result<Advance> advance(double microseconds, const SubmitSemaphores& semaphores);
  Result<Advance> record(VkCommandBuffer_T* commands, double microseconds);
  Status drop_recorded();
  Result<TensorMap> finish();
  Result<Generation> finish_generation();
  Status cancel();
  // Tensors of the pass that was started, by name; waits until it is prepared.
  Result<std::map<std::string, PassTensor>> tensors();
  // Drops recordings on buffers of the application.
  Status forget_buffers();

 private:
  SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options);
  // A pass that has to be prepared; null until it is. Held, so that more of them than are kept
  // (SessionOptions::recordings) can be there together.
  template <class Pass, class Key>
  struct Need {
    Key key;
    std::shared_ptr<Pass> pass = nullptr;
  };
  struct Needs {
    std::vector<Need<ForwardPass, ForwardKey>> passes;
    std::vector<Need<DecodeStep, GenerationKey>> steps;
    std::vector<Need<ImageInputs, ImageInputsKey>> images;
  };
  // What was started and waits for what it needs.
  struct Awaited {
    Needs needs;
    std::function<Status(Needs& needs)> begin;  // once all of it is prepared
  };
  // Of a family with two passes (ModelFacts::Passes): what was started, until it is finished.
  struct TwoPasses {
    TensorMap inputs;
    TensorMap outputs = {};  // of the first, once it has run
    bool second = false;     // whether the second one has begun, or is being prepared
  };
  Status start(Awaited awaited);
  // Whether what was started has begun. Works on what it waits for, for about so long where that is
  // up to the caller; infinity waits. What fails ends what was started.
  Result<bool> begun(double microseconds);
  Result<bool> prepared(Needs& needs, double microseconds);
  // The same, after which slices go on. Where the first of two passes has run, the second one
  // begins. Infinity waits for the first.
  Result<bool> going_on(double microseconds, double wait);
  Status follow_first(double microseconds);
  // Of both passes, where there are two.
  Advance of_both(Advance advance) const;
  double fraction(const Needs& needs);
  Advance preparing();
  Status check_idle() const;
  Status check_prepared() const;

  // A pass over inputs that were read.
  struct PassRequest {
    ForwardKey key;
    PassInputs inputs;
  };
  Result<PassRequest> pass_request(const TensorMap& inputs, const RunOptions& options,
                                   const std::map<std::string, TensorPlace>& places,
                                   ForwardTaps::Tap last_logits);
  Result<TensorMap> run(const PassRequest& request);
  Awaited awaited_pass(PassRequest read);
  // The second of two passes, of the outputs that the first gave; keeps those for the caller.
  Result<PassRequest> second_request(const TensorMap& inputs, TensorMap& outputs) const;
  // A pass or a generation as parts that run beside each other; absent where they run as one.
  Result<std::optional<TensorMap>> run_beside(const TensorMap& inputs, const RunOptions& options);
  Result<std::optional<Generation>> generate_beside(const TensorMap& inputs,
                                                    const GenerateOptions& options);
  // Why slices and what is prepared for them have no part in a model that is split, if it is.
  Status check_whole(const char* what) const;
  // Runs the second pass of a family that has one, and adds its outputs.
  Status run_second(const TensorMap& inputs, TensorMap& outputs);
  Lengths lengths() const { return options_.round_lengths ? Lengths::kRounded : Lengths::kGiven; }
  bool give_way(const Result<uint64_t>& wanted_bytes);
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
  PassCache<ForwardPass, ForwardKey> forward_;
  PassCache<DecodeStep, GenerationKey> steps_;
  PassCache<ImageInputs, ImageInputsKey> images_;
  PrefixCache prefixes_;
  GenerationCounters counters_;
  std::atomic<bool> busy_{false};
  // After the passes, whose recordings its slices may still run.
  SlicedRun sliced_;
  std::optional<Awaited> awaited_;
  std::optional<TwoPasses> two_;
  Needs warming_;  // asked for by warm_up
};

}  // namespace vkformer
