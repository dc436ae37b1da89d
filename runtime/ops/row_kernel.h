// The one heuristic of row-wise kernels (norms, softmax, pooling): how wide a workgroup is.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/device_caps.h"

namespace vkformer {

// Mesa's llvmpipe leaves every loop of a shader once an invocation has gone round 65,535 times in
// all (LP_MAX_TGSI_LOOP_ITERATIONS), and says nothing. A loop with a condition inside counts twice.
inline constexpr uint64_t kMostSoftwareIterations = 65535;

// Whether loops of this number of rounds end early there; nested loops count together.
inline bool leaves_loops(const DeviceCaps& caps, uint64_t rounds) {
  return caps.device_class == DeviceClass::kSoftware && rounds > kMostSoftwareIterations;
}

// Invocations for a workgroup that reduces `width` elements in `passes` passes. It is a power of
// two, at least the subgroup, at most 128 and the device's limit. On software devices an invocation
// is a vector lane, and a barrier costs a context switch per lane group. So one lane group does a
// row, unless its loops would be cut short.
inline uint32_t row_local_size(const DeviceCaps& caps, uint32_t width, uint64_t passes = 4) {
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  uint32_t lanes = std::clamp(std::bit_ceil(std::max(1u, caps.subgroup_size)), 4u, limit);
  if (caps.device_class == DeviceClass::kSoftware) {
    while (2 * lanes <= limit && 2 * passes * (width / lanes + 1) > kMostSoftwareIterations) {
      lanes *= 2;
    }
    return lanes;
  }
  return std::clamp(std::bit_ceil(std::max(1u, (width + 3) / 4)), std::max(lanes, 32u), limit);
}

// Whether even that many invocations are too few for a software device; the K best of a row take K
// passes.
inline bool too_many_passes(const DeviceCaps& caps, uint32_t width, uint64_t passes) {
  const uint32_t lanes = row_local_size(caps, width, passes);
  return leaves_loops(caps, 2 * passes * (width / lanes + 1));
}

}  // namespace vkformer
