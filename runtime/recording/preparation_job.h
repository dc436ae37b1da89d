// Prepares a pass while frames go on: beside the calling thread, or in portions on it.
#pragma once

#include <memory>
#include <optional>

#include "base/background_task.h"
#include "recording/preparation.h"
#include "vulkan/pipelines.h"

namespace vkformer {

class PreparationJob {
 public:
  // `device` and `pass` outlive the job.
  PreparationJob(VulkanDevice& device, Preparation& pass);
  // Stops after the pipeline that is just being made.
  ~PreparationJob();

  // Whether plan and record are over; what failed in them is an error. Waits where `microseconds`
  // of host time are infinite. Where nobody is beside the caller, works for about so long.
  Result<bool> advance(double microseconds);
  // 0 to 1, of the pipelines.
  double fraction() const;

 private:
  // Where a caller without threads is.
  struct Portions {
    bool planned = false;
    std::vector<const Dispatch*> pipelines;  // that may be missing
    size_t next = 0;
  };
  // Everything at once, beside the caller.
  Status prepare();
  Result<bool> portion();

  VulkanDevice& device_;
  Preparation& pass_;
  PipelineCount count_;
  Status result_;  // of the task, once it is done
  Portions portions_;
  std::unique_ptr<BackgroundTask> task_;  // null: portions; after what it uses
};

}  // namespace vkformer
