// Who wants to know how long every dispatch took, or what it wrote, whatever submits it; see
// VulkanDevice::set_profiler.
#pragma once

#include <span>

#include "plan/plan.h"
#include "vulkan/recording.h"

namespace vkformer {

class DispatchProfiler {
 public:
  virtual ~DispatchProfiler() = default;
  // A recording of this plan was made; the answer is its number.
  virtual uint32_t recorded(const Plan& plan) = 0;
  // Dispatches of a plan that have run in one submit.
  struct Ran {
    uint32_t number = 0;  // of the plan; 0 if it was recorded before the profiler was set
    uint32_t first = 0;   // dispatch
    uint32_t count = 0;   // dispatches
  };
  // `spans` has an entry per dispatch that ran, or none if the device has no timestamps. `wall_ns`
  // is from before the submit until it was over.
  virtual void finished(const Ran& ran, std::span<const Recording::Span> spans, double wall_ns) = 0;
  // Whether `executed` is wanted instead; every dispatch is then its own submit.
  virtual bool watches() const { return false; }
  // That dispatch of the plan has run, and nothing after it.
  virtual Status executed(const Recording&, uint32_t) { return {}; }
};

}  // namespace vkformer
