// How a weight in blocks lies in memory: panels of 64 columns (params/matmul.h). A panel is the
// blocks of 32 steps of K one after the other, the last one filled up with zeros.
//
// A block is 8 runs of 4 steps, each 8 groups of 8 columns. A group of columns c to c + 7 is, in
// words:
//   BF16: 4 for each of the 4 steps. Word i has column c + i in its low half, c + 4 + i in its high
//     one.
//   8 bits: 8, one a column. Byte s is the signed value of step s.
//   2 and 3 bits: see below.
//   Others: 4. Word i has column c + i in its low half and c + 4 + i in its high half. Nibble s is
//     the value of step s, or its lower 4 bits.
// Values of 5 or 6 bits have their upper bits after all runs, those of 3 bits their third. These,
// and values of 2 bits, lie by group and then by run:
//   1 bit: 1 word. Bit 8 s + i is that of step s and column c + i.
//   2 bits: 2 words, of columns c to c + 3 and of the others. Bits 8 s + 2 i and the next are those
//     of step s and column i of the four.
// Then come the scales, by group:
//   One a block: 4 words. Word i has column c + i and c + 4 + i, bfloat16 in Q8, Q4 and Q4M, else
//     half. The minima of Q4M, Q4_1 and Q5_1 follow after all scales likewise.
//   MXFP4: 2 words, of columns c to c + 3 and of the others. Byte i is the exponent of column i of
//     the four, plus 128.
//   IQ4_XS: the same of signed scales.
//   Q4_K, Q5_K: 3 words. Bits 8 i to 8 i + 5 of the first are the scale of column c + i. The two
//     bits above them are the lowest of its minimum. The second is the same of column c + 4 + i.
//     Nibble i of the third has the other bits of the minimum of column c + i, of all 8.
//   Q3_K, Q6_K: 4 words. The first two are the scales of the first 16 steps, signed bytes, of
//     columns c to c + 3 and of the others. The next two are those of the last 16 steps.
//   Q2_K: the same of bytes. Their lower 4 bits are the scale, the others the minimum.
// From Q2_K on every 8 blocks begin with what multiplies their scales, halves in 4 words a group.
// What multiplies their minima follows in Q2_K, Q4_K and Q5_K.
//
// A weight is, in the formats of vkformer:
//   Q8: scale * value.
//   Q4: scale * (value - 8).
//   Q4M: minimum + scale * value.
// Their scales are bfloat16, which has no small range to leave. Its product with a value is exact
// in f32. In those of GGUF files (https://github.com/ggml-org/ggml, docs/gguf.md) a weight is:
//   Q8_0, Q4_0, Q5_0: scale * value, scale * (value - 8), scale * (value - 16).
//   Q4_1, Q5_1: minimum + scale * value.
//   Q2_K, Q4_K, Q5_K: d * scale * value - m * minimum.
//   Q3_K, Q6_K: d * scale * (value - 4), d * scale * (value - 32).
//   IQ4_NL, IQ4_XS: scale * table[value], d * scale * table[value], of kIq4Values.
//   MXFP4: scale * twice the E2M1 value (Open Compute Project, 2023).
// Halves are multiplied by integers of few bits, so each product is exact or rounded once.
#ifndef VKFORMER_PARAMS_WEIGHT_BLOCKS_H
#define VKFORMER_PARAMS_WEIGHT_BLOCKS_H
#include "types.h"
#ifdef __cplusplus
#define VKF_UINT_CONSTANT(name, value) inline constexpr uint32_t name = value
#else
#define VKF_UINT_CONSTANT(name, value) const uint name = value
#endif
VKF_UINT_CONSTANT(kBlockSteps, 32u);
VKF_UINT_CONSTANT(kBlocksOfSuper, 8u);  // that share d and m
VKF_UINT_CONSTANT(kFormatBf16, 2u);
VKF_UINT_CONSTANT(kFormatQ8, 3u);
VKF_UINT_CONSTANT(kFormatQ4, 4u);
VKF_UINT_CONSTANT(kFormatQ4M, 5u);
VKF_UINT_CONSTANT(kFormatQ8_0, 6u);
VKF_UINT_CONSTANT(kFormatQ4_0, 7u);
VKF_UINT_CONSTANT(kFormatQ4_1, 8u);
VKF_UINT_CONSTANT(kFormatQ5_0, 9u);
VKF_UINT_CONSTANT(kFormatQ5_1, 10u);
VKF_UINT_CONSTANT(kFormatIq4Nl, 11u);
VKF_UINT_CONSTANT(kFormatMxfp4, 12u);
VKF_UINT_CONSTANT(kFormatQ2K, 13u);
VKF_UINT_CONSTANT(kFormatQ3K, 14u);
VKF_UINT_CONSTANT(kFormatQ4K, 15u);
VKF_UINT_CONSTANT(kFormatQ5K, 16u);
VKF_UINT_CONSTANT(kFormatQ6K, 17u);
VKF_UINT_CONSTANT(kFormatIq4Xs, 18u);
#undef VKF_UINT_CONSTANT
// The 16 signed values of IQ4_NL and IQ4_XS, four in a word.
#ifdef __cplusplus
inline constexpr uint32_t kIq4Values[] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
#else
const uvec4 kIq4Values = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
#endif
#endif
