// How the attention kernels may load: which devices take the kernels of lanes, and how wide.
#pragma once

#include "ops/attention.h"

namespace vkformer {

// Whether every row of k, and of relative positions, begins at a multiple of four elements.
inline bool starts_in_quads(const AttentionAttrs& a) {
  const HeadLayout& k = a.k;
  return (k.offset | k.batch_stride | k.head_stride | k.row_stride | a.head_width |
          a.relative.offset) %
             4 ==
         0;
}

// Software devices of few lanes load a key's row by all lanes together. Those without 64-bit
// integers (SwiftShader) keep arrays in memory, where that is slow.
inline bool loads_by_lanes(const DeviceCaps& caps) {
  return caps.device_class == DeviceClass::kSoftware && caps.int64() &&
         (caps.subgroup_size == 4 || caps.subgroup_size == 8);
}

// Neighbouring elements that one load may fetch where these are all widths, offsets and strides,
// joined by "or".
inline uint32_t widest_load(uint32_t all) {
  return all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
}
inline uint32_t elements_of_load(const AttentionAttrs& a) {
  uint32_t all = a.head_width | a.value_width | (a.relative.kinds != 0 ? a.relative.offset : 0);
  for (const HeadLayout& l : {a.q, a.k, a.v, a.y}) {
    all |= l.offset | l.batch_stride | l.head_stride | l.row_stride;
  }
  return widest_load(all);
}

}  // namespace vkformer
