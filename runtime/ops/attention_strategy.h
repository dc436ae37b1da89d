// What the strategies of attention share: how one is launched, and how its kernels may load.
#pragma once

#include "ops/attention.h"

namespace vkformer {

// A strategy as a row of choices: its kernel, its queries per workgroup, its constants.
struct AttentionStrategy {
  KernelId kernel{};
  uint32_t rows = 1;  // queries of a workgroup
  SpecConstants spec;
  uint32_t table_part_bytes = 0;  // of keys and values
};

inline constexpr uint32_t kTiledQueries = 8;  // of a workgroup of the tiled strategy

// Lanes of the tiled strategy; 0: its loops are too long for a software device.
uint32_t tiled_local_size(const DeviceCaps& caps, const AttentionAttrs& attrs);

inline bool counts_keys(const AttentionAttrs& a) {
  return a.report == AttentionAttrs::Report::kVisitedKeys;
}

inline bool is_sparse(const ScoreTermsParams& t) {
  return (t.flags & (VKF_TERM_SPARSE | VKF_TERM_MASKED_QUERIES)) != 0;
}

// Whether every row of k, and of relative positions, begins at a multiple of four elements.
inline bool starts_in_quads(const AttentionAttrs& a) {
  const HeadLayout& k = a.k;
  return (k.offset | k.batch_stride | k.head_stride | k.row_stride | a.head_width |
          a.relative.offset) %
             4 ==
         0;
}

// Neighboring elements that one load may fetch where these are all widths, offsets and strides,
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
