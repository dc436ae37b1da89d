// The profile of vkformer/benchmark.h: the time of every dispatch, whatever submitted it.
#pragma once

#include <memory>
#include <vector>

#include "vkformer/benchmark.h"
#include "vulkan/dispatch_profiler.h"

namespace vkformer {

class ProfileRecorder : public DispatchProfiler {
 public:
  uint32_t recorded(const Plan& plan) override;
  void finished(const Ran& ran, std::span<const Recording::Span> spans, double wall_ns) override;
  // What came since the last call.
  Profile take();

 private:
  struct Submit {
    Ran ran;
    std::vector<Recording::Span> spans;
    double wall_ns;
  };
  void append(const Submit& submit, double clock_start, Profile& profile) const;

  // By number - 1: what is the same in every submit.
  std::vector<std::vector<ProfiledDispatch>> plans_;
  std::vector<Submit> submits_;
};

Status start_device_profile(const std::shared_ptr<VulkanDevice>& device);
Result<Profile> take_device_profile(const std::shared_ptr<VulkanDevice>& device);
Status stop_device_profile(const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
