// How wide the attention kernels may load.
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

// Neighbouring elements that one load may fetch: what divides every width, offset and stride.
inline uint32_t elements_of_load(const AttentionAttrs& a) {
  uint32_t all = a.head_width | a.value_width | (a.relative.kinds != 0 ? a.relative.offset : 0);
  for (const HeadLayout& l : {a.q, a.k, a.v, a.y}) {
    all |= l.offset | l.batch_stride | l.head_stride | l.row_stride;
  }
  return all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
}

}  // namespace vkformer
