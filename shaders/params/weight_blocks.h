// How a weight in blocks lies in memory: panels of 64 columns (params/matmul.h), each the blocks of
// 32 steps of K one after the other, the last one filled up with zeros.
//
// A block is 8 runs of 4 steps, each 8 groups of 8 columns, then the scales of the 64 columns, then,
// in Q4M, their minima. Of a group of columns c to c + 7, in words:
//   BF16   4 for each of the 4 steps: word i has column c + i (low half) and c + 4 + i (high half)
//   Q8     8, one a column: byte s is the signed value of step s
//   Q4(M)  4: word i has column c + i in its low half and c + 4 + i in its high half; nibble s is
//          the value of step s
//   scales, minima: 4, bfloat16: word i has column c + i and c + 4 + i
// A weight is scale * value in Q8, scale * (value - 8) in Q4, minimum + scale * value in Q4M. Scales
// are bfloat16, which has no small range to leave and whose product with a value is exact in f32.
#ifndef VKFORMER_PARAMS_WEIGHT_BLOCKS_H
#define VKFORMER_PARAMS_WEIGHT_BLOCKS_H
#include "types.h"
#ifdef __cplusplus
inline constexpr uint32_t kBlockSteps = 32;
inline constexpr uint32_t kFormatBf16 = 2;
inline constexpr uint32_t kFormatQ8 = 3;
inline constexpr uint32_t kFormatQ4 = 4;
inline constexpr uint32_t kFormatQ4M = 5;
#else
const uint kBlockSteps = 32u;
const uint kFormatBf16 = 2u;
const uint kFormatQ8 = 3u;
const uint kFormatQ4 = 4u;
const uint kFormatQ4M = 5u;
#endif
#endif
