// 32 weights in few bits, whatever the file or the matrix that they lie in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/matrix_format.h"

namespace vkformer {

// 32 neighbors along K of one output feature. What a weight is, by the format:
//   BF16: the bfloat16 of these bits.
//   Q2_K, Q4_K, Q5_K: scale * part * value - minimum * minimum part.
//   Q3_K, Q6_K: scale * part * (value - 4), (value - 32).
//   IQ4_NL, IQ4_XS: scale * table[value], scale * part * table[value].
//   MXFP4: scale * twice the E2M1 number of that code.
//   Others: minimum + scale * value.
// Parts are of the first and the last 16 weights.
struct WeightBlock {
  float scale = 0;    // what the format's scale can be: a bfloat16, a half, a power of 2
  float minimum = 0;  // likewise; where the format has none, but an offset, -offset * scale
  std::array<int32_t, kBlockSteps> values{};
  std::array<int32_t, 2> parts = {1, 1};
  std::array<int32_t, 2> minimum_parts = {0, 0};
};

// The weight that value `index` of the block stands for, exactly as the shaders compute it.
float block_weight(const WeightBlock& block, size_t index, MatrixFormat format);

// Twice the number of an E2M1 code of 4 bits.
constexpr int32_t doubled_e2m1(uint32_t code) {
  constexpr std::array<int32_t, 8> kDoubled = {0, 1, 2, 3, 4, 6, 8, 12};
  return (code & 8u) != 0 ? -kDoubled[code & 7u] : kDoubled[code & 7u];
}

// What a code of 4 bits stands for in IQ4_NL and IQ4_XS.
constexpr int32_t iq4_value(uint32_t code) {
  return static_cast<int8_t>(kIq4Values[code / 4] >> (8 * (code % 4)) & 255u);
}

}  // namespace vkformer
