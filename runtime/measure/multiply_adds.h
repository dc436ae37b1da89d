// The multiply-adds in registers that a device's rate is measured by, and that keep it busy.
#pragma once

#include "plan/device_caps.h"
#include "plan/plan.h"

namespace vkformer {

// What a kernel of multiply-adds does in one iteration of all its invocations.
struct MultiplyAdds {
  KernelId kernel = KernelId::roofline_fma__f32;
  SpecConstants spec;
  double operations = 0;
};

// Enough invocations to fill the widest device; on a software one a workgroup is one vector.
struct MultiplyAddsLaunch {
  uint32_t local_size;
  uint32_t groups;
};
MultiplyAddsLaunch multiply_adds_launch(const DeviceCaps& caps);

// Of roofline_fma in one of its types.
MultiplyAdds multiply_adds(const DeviceCaps& caps, KernelId kernel);

// kAtOnce: the dispatch names no operations, so that it is not split. How long it takes is up to
// the caller. kSplit: it becomes dispatches and submits as long as a watchdog allows.
enum class MultiplyAddsLength : uint8_t { kAtOnce, kSplit };
Plan multiply_adds_plan(const DeviceCaps& caps, const MultiplyAdds& work, uint32_t iterations,
                        MultiplyAddsLength length);

}  // namespace vkformer
