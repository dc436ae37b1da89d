// 32 weights in few bits, whatever the file or the matrix that they lie in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/matrix_format.h"

namespace vkformer {

// 32 neighbors along K of one output feature. What a weight is, by the format:
//   BF16           the bfloat16 of these bits
//   Q4_K, Q5_K     scale * parts[0] * value - minimum * minimum_part
//   Q6_K           scale * parts[first or last 16] * (value - 32)
//   MXFP4          scale * twice the E2M1 number of that code
//   others         minimum + scale * value
struct WeightBlock {
  float scale = 0;    // what the format's scale can be: a bfloat16, a half, a power of 2
  float minimum = 0;  // likewise; where the format has none, but an offset, -offset * scale
  std::array<int32_t, kBlockSteps> values{};
  std::array<int32_t, 2> parts = {1, 1};
  int32_t minimum_part = 0;
};

// The weight that value `index` of the block stands for, exactly as the shaders compute it.
float block_weight(const WeightBlock& block, size_t index, MatrixFormat format);

// Twice the number of an E2M1 code of 4 bits.
constexpr int32_t doubled_e2m1(uint32_t code) {
  constexpr std::array<int32_t, 8> kDoubled = {0, 1, 2, 3, 4, 6, 8, 12};
  return (code & 8u) != 0 ? -kDoubled[code & 7u] : kDoubled[code & 7u];
}

}  // namespace vkformer
