#include "base/weight_block.h"

#include <cmath>

#include "base/half.h"

namespace vkformer {

// Products of a scale and a value are exact; a sum, and the product of three, is rounded once.
float block_weight(const WeightBlock& block, size_t index, MatrixFormat format) {
  const int32_t code = block.values[index];
  if (format == MatrixFormat::kBF16) return float_from_bfloat(static_cast<uint16_t>(code));
  if (format == MatrixFormat::kMxfp4) {
    return block.scale * static_cast<float>(doubled_e2m1(static_cast<uint32_t>(code)));
  }
  const bool table = format == MatrixFormat::kIq4Nl || format == MatrixFormat::kIq4Xs;
  const auto value = static_cast<float>(table ? iq4_value(static_cast<uint32_t>(code)) : code);
  if (!has_supers(format)) return std::fma(block.scale, value, block.minimum);
  const size_t half = index / (kBlockSteps / 2);
  const float scale = block.scale * static_cast<float>(block.parts[half]);
  const float offset = super_minima(format)
                           ? -block.minimum * static_cast<float>(block.minimum_parts[half])
                           : -static_cast<float>(block_traits(format).offset) * scale;
  return std::fma(scale, value, offset);
}

}  // namespace vkformer
