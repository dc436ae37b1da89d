#include "measure/multiply_adds.h"

#include <algorithm>

#include "params/roofline.h"

namespace vkformer {
namespace {

// Independent sums of four of an invocation of roofline_fma. They are enough to hide the latency of
// a multiply-add. They are few enough to stay in registers where an invocation is a vector lane (12
// of 16).
constexpr uint32_t kChains = 3;

}  // namespace

MultiplyAddsLaunch multiply_adds_launch(const DeviceCaps& caps) {
  if (caps.device_class == DeviceClass::kSoftware) {
    return {std::clamp(caps.subgroup_size, 4u, 64u), 256};
  }
  return {128, 16384};
}

MultiplyAdds multiply_adds(const DeviceCaps& caps, KernelId kernel) {
  const MultiplyAddsLaunch launch = multiply_adds_launch(caps);
  return {kernel, constants(WorkgroupConstants{launch.local_size}),
          2.0 * 4 * kChains * VKF_ROOFLINE_STEPS * launch.local_size * launch.groups};
}

Plan multiply_adds_plan(const DeviceCaps& caps, const MultiplyAdds& work, uint32_t iterations,
                        MultiplyAddsLength length) {
  Plan plan;
  plan.buffers.push_back({.name = "roofline sum", .source = BufferSource::kExternal, .bytes = 16});
  Dispatch d;
  d.kernel = work.kernel;
  d.label = "roofline multiply-add";
  d.bindings = {{0, Access::kWrite}};
  d.set_constants(work.spec);
  d.groups = {multiply_adds_launch(caps).groups, 1, 1};
  d.set_push(RooflineFmaParams{iterations, 0.9375f, 0.0625f, -1.0f});
  if (length == MultiplyAddsLength::kSplit) d.flops = work.operations * iterations;
  plan.dispatches.push_back(std::move(d));
  return plan;
}

}  // namespace vkformer
