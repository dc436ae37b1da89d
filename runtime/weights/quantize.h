// Weights in few bits, and where they lie in a packed matrix. The layout is params/weight_blocks.h.
#pragma once

#include <span>

#include "base/weight_block.h"

namespace vkformer {

// The largest weight that blocks of the format hold is below this.
float block_limit(MatrixFormat format);

// Can blocks of the format hold these weights? Not numbers that are infinite or no numbers, nor
// ones near the end of the range of what they are multiplied with.
bool fits_blocks(std::span<const float> weights, MatrixFormat format);

// Is a matrix large enough that blocks save something?
constexpr bool worth_blocks(int64_t n, int64_t k) {
  return k >= kBlockSteps && n * k >= 1024;
}

// Weights along K that one call quantizes: those that share anything.
constexpr size_t quantized_together(MatrixFormat format) {
  return has_supers(format) ? size_t{kBlockSteps} * kBlocksOfSuper : kBlockSteps;
}

// The blocks of up to quantized_together(format) finite weights, which `blocks` has room for; what
// is missing is filled up with what stands for nothing. Formats of 8 bits take the scale that the
// largest weight needs; others try several and take the one of the least squared error.
// Precondition: fits_blocks(weights, format).
void quantize_blocks(std::span<const float> weights, MatrixFormat format,
                     std::span<WeightBlock> blocks);
// The only block of a format without what 8 blocks share.
WeightBlock quantize_block(std::span<const float> weights, MatrixFormat format);

// Writes the block of column `column` and steps 32 * `block_index` on into a packed matrix, which
// has zeros where it goes. Blocks that share something are all written, with the same. An MXFP4
// block whose weights GPUs may take for zeros is zeros.
struct BlockPlace {
  size_t column = 0;
  size_t block_index = 0;
  size_t k = 0;  // K of the matrix
};
void store_block(std::span<std::byte> matrix, const BlockPlace& place, const WeightBlock& block,
                 MatrixFormat format);
// The blocks of weights that quantize_blocks takes, from `first` on. Preconditions are the same.
void store_quantized(std::span<std::byte> matrix, const BlockPlace& first,
                     std::span<const float> weights, MatrixFormat format);

}  // namespace vkformer
