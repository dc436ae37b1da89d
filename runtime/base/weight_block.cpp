#include "base/weight_block.h"

#include <cmath>

#include "base/half.h"

namespace vkformer {

// Products of a scale and a value are exact; a sum, and the product of Q6_K's three, is rounded
// once.
float block_weight(const WeightBlock& block, size_t index, MatrixFormat format) {
  const int32_t code = block.values[index];
  if (format == MatrixFormat::kBF16) return float_from_bfloat(static_cast<uint16_t>(code));
  if (format == MatrixFormat::kMxfp4) {
    return block.scale * static_cast<float>(doubled_e2m1(static_cast<uint32_t>(code)));
  }
  const auto value = static_cast<float>(code);
  if (!has_supers(format)) return std::fma(block.scale, value, block.minimum);
  const float scale = block.scale * static_cast<float>(block.parts[index / (kBlockSteps / 2)]);
  const float offset = format == MatrixFormat::kQ6K
                           ? -static_cast<float>(block_traits(format).offset) * scale
                           : -block.minimum * static_cast<float>(block.minimum_part);
  return std::fma(scale, value, offset);
}

}  // namespace vkformer
