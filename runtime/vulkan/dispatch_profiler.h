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
  // A recording has run. `number` is 0 if it was made before the profiler was set; `spans` has an
  // entry per dispatch of the plan, or none where the device has no timestamps. `wall_ns` is from
  // before the submit until it was over.
  virtual void finished(uint32_t number, std::span<const Recording::Span> spans,
                        double wall_ns) = 0;
  // Whether `executed` is wanted instead; every dispatch is then a submit of its own.
  virtual bool watches() const { return false; }
  // That dispatch of the plan has run, and nothing behind it.
  virtual Status executed(const Recording&, uint32_t) { return {}; }
};

}  // namespace vkformer
