// Blocks of 32 weights in few bits, and where they lie in a packed matrix. The layout is
// params/weight_blocks.h.
#pragma once

#include <array>
#include <span>

#include "base/matrix_format.h"

namespace vkformer {

// 32 neighbors along K of one output feature. A weight is minimum + scale * value, but in BF16,
// where it is the bfloat16 of these bits.
struct WeightBlock {
  float scale = 0;    // a bfloat16
  float minimum = 0;  // a bfloat16; of Q4 -8 * scale, of Q8 0
  std::array<int32_t, kBlockSteps> values{};
};

// Can blocks of the format hold these weights? Not numbers that are infinite or no numbers, nor
// ones near the end of f32's range.
bool fits_blocks(std::span<const float> weights, MatrixFormat format);

// Is a matrix large enough that blocks save something?
constexpr bool worth_blocks(int64_t n, int64_t k) {
  return k >= kBlockSteps && n * k >= 1024;
}

// The block of up to 32 finite weights; what is missing is filled up with what stands for nothing.
// Q8 takes the scale that the largest weight needs; Q4 and Q4M try several and take the one of the
// least squared error.
WeightBlock quantise_block(std::span<const float> weights, MatrixFormat format);

// The weight that value `index` of the block stands for, exactly as the shaders compute it.
float block_weight(const WeightBlock& block, size_t index, MatrixFormat format);

// Writes the block of column `column` and steps 32 * `block_index` on into a packed matrix, which
// has zeros where it goes.
struct BlockPlace {
  size_t column = 0;
  size_t block_index = 0;
  size_t k = 0;  // K of the matrix
};
void store_block(std::span<std::byte> matrix, const BlockPlace& place, const WeightBlock& block,
                 MatrixFormat format);

}  // namespace vkformer
