// Products of precision int8: rows in signed bytes by blocks of 32 (params/byte_rows.h) times
// weights in the same blocks. Inside a block integers are added up, exactly; blocks are added in
// f32.
#pragma once

#include "ops/matmul_strategy.h"

namespace vkformer {

// The rows of kDots and kDotTiles.
const MatmulStrategyRow& dots_row();
const MatmulStrategyRow& dot_tiles_row();

// Whether a choice reads rows in bytes, which quantized_rows makes.
constexpr bool reads_bytes(const MatmulChoice& choice) {
  return choice.strategy == MatmulStrategy::kDots || choice.strategy == MatmulStrategy::kDotTiles;
}

// Whether precision int8 multiplies integers where a weight has that format.
constexpr bool has_integer_products(MatrixFormat format) {
  return is_quantized(format);
}

// 32-bit words of a row of K elements in bytes; rows begin at multiples of 4.
constexpr uint32_t byte_row_words(uint32_t k) {
  const uint32_t blocks = (k + kBlockSteps - 1) / kBlockSteps;
  return (10 * blocks + 3) / 4 * 4;
}

// A buffer of the plan with the rows of A of `problem` in bytes. Makes them of the tensor `a` by a
// separate dispatch; where the products before had the same rows, that of the first serves all.
uint32_t quantized_rows(LowerContext& context, const Node& node, const MatmulProblem& problem,
                        uint32_t a);

}  // namespace vkformer
