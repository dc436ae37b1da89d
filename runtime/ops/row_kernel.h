// The one heuristic of row-wise kernels (norms, softmax, pooling): how wide a workgroup is.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/device_caps.h"

namespace vkformer {

// Invocations for a workgroup that reduces `width` elements: a power of two, at least the subgroup,
// at most 128 and the device's limit. On software devices an invocation is a vector lane and a
// barrier costs a context switch per lane group, so one lane group does a row.
inline uint32_t row_local_size(const DeviceCaps& caps, uint32_t width) {
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  const uint32_t lanes = std::clamp(std::bit_ceil(std::max(1u, caps.subgroup_size)), 4u, limit);
  if (caps.device_class == DeviceClass::kSoftware) return lanes;
  return std::clamp(std::bit_ceil(std::max(1u, (width + 3) / 4)), std::max(lanes, 32u), limit);
}

}  // namespace vkformer
