// Push constants of the Nystroemformer's kernels: segment_means, inverse_start.
#ifndef VKFORMER_PARAMS_NYSTROM_H
#define VKFORMER_PARAMS_NYSTROM_H
#include "attention.h"

struct SegmentMeansParams {
  HeadLayout x;     // (B, H, S, E)
  HeadLayout y;     // (B, H, M, E)
  uint_t rows;      // B * M
  uint_t segments;  // M
  uint_t span;      // tokens of a segment, S / M
  uint_t width;     // E
  uint_t columns;   // H * E
};

struct InverseStartParams {
  uint_t matrices;    // N
  uint_t side;        // M
  uint_t shared_max;  // 1: the largest column sum of all matrices; 0: of each its own
};
#ifdef __cplusplus
static_assert(sizeof(SegmentMeansParams) == 52);
static_assert(sizeof(InverseStartParams) == 12);
#endif
#endif
