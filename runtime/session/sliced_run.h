// A pass or a generation that a session carries out in slices, each within a budget of GPU time.
#pragma once

#include <optional>

#include "base/background_task.h"
#include "generate/generation_jobs.h"
#include "session/forward_pass.h"
#include "session/image_inputs.h"

namespace vkformer {

// An error unless a frame's budget is above 0 microseconds.
Status check_budget(double microseconds);
// The error of a start before what was started earlier is finished.
Error already_started();

class SlicedRun {
 public:
  explicit SlicedRun(std::shared_ptr<VulkanDevice> device) : device_(std::move(device)) {}

  // An error while something is started and not finished.
  Status check_idle() const;
  // Whether there is what slices are carried out with. Begins to make it on a helper's thread.
  // Without a helper, makes it in up to `microseconds` of the caller's time; infinity waits.
  Result<bool> prepare(double microseconds);
  // A pass over `inputs`, whose pixel values are made of `images` where there are some, from
  // copies.
  Status start_pass(std::shared_ptr<ForwardPass> pass, PassInputs inputs,
                    std::shared_ptr<ImageInputs> images, std::vector<SliceImage> copies);
  // A job with the prepared step of its key.
  struct ReadyJob {
    GenerationJob job;
    std::unique_ptr<GenerationPass> pass;
  };
  // Jobs one after the other; `counters` outlives the run.
  Status start_generation(std::vector<ReadyJob> jobs, const GenerateOptions& options,
                          int steps_per_submit, GenerationCounters& counters);
  // A submit of these alone, where there is no slice yet.
  Status sync(const SubmitSemaphores& semaphores);
  // The next slice: to our own queue, or into a command buffer of the application.
  Result<Advance> advance(double microseconds, const SubmitSemaphores& semaphores);
  Result<Advance> record(VkCommandBuffer_T* commands, double microseconds);
  Status drop_recorded();
  Result<TensorMap> finish();
  Result<Generation> finish_generation();
  Status cancel();
  // Whether all slices of a pass have run, as far as is known. Waits for those that were submitted
  // where `microseconds` is infinity.
  Result<bool> pass_ran(double microseconds);
  // Whether slices that the application submits can be seen to have run.
  bool timed() const { return sliced_ && sliced_->timed(); }
  // Tensors of the pass that was started, by name.
  Result<std::map<std::string, PassTensor>> tensors() const;

 private:
  // What was started: a pass with its words, or the jobs of a generation.
  struct Started {
    std::shared_ptr<ForwardPass> pass;
    PassInputs inputs;
    std::shared_ptr<ImageInputs> images;  // or null
    GenerateOptions options;
    int steps_per_submit = 1;
    GenerationCounters* counters = nullptr;
    std::vector<ReadyJob> jobs;
    size_t job = 0;  // the current one
    // Shares of its steps: those that have run, and those that are being submitted.
    double before = 0, share = 0;
    Generation generation;
  };
  Status make_stream();
  // Begins `work` by `begin`; nothing is started where that fails.
  Status start(Started work, const std::function<Status()>& begin);
  // The slices of a pass, after copies of images.
  Status begin_pass(std::vector<SliceImage> copies);
  Status begin_job();
  // The next steps of the current job; false where none is left.
  Result<bool> begin_steps();
  // Ends a job whose rows are all finished and begins the next.
  Status follow_jobs();
  Status follow_job();
  Advance with_jobs(Advance advance) const;
  Status wait_for_slices();
  Status check_started() const;

  std::shared_ptr<VulkanDevice> device_;
  std::optional<Started> started_;
  // After the passes, whose recordings its slices may still run.
  std::unique_ptr<SlicedWork> sliced_;
  Result<std::unique_ptr<SlicedWork>> made_{nullptr};  // of the task, once it is done
  std::unique_ptr<BackgroundTask> making_;             // after what it uses
};

}  // namespace vkformer
