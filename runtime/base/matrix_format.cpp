#include "base/matrix_format.h"

namespace vkformer {

const char* format_name(MatrixFormat format) {
  return choice_name(weight_format_of(format));
}

// WeightFormat has the same formats after kAsStored.
WeightFormat weight_format_of(MatrixFormat format) {
  return static_cast<WeightFormat>(static_cast<int>(format) + 1);
}

std::optional<MatrixFormat> matrix_format_of(WeightFormat format) {
  for (const MatrixFormat candidate : kMatrixFormats) {
    if (weight_format_of(candidate) == format) return candidate;
  }
  return std::nullopt;
}

double weight_bits(WeightFormat format) {
  constexpr uint64_t kRows = uint64_t{kBlockSteps} * kBlocksOfSuper;
  const MatrixFormat stored = matrix_format_of(format).value_or(MatrixFormat::kF32);
  return 32.0 * static_cast<double>(panel_words(stored, kRows)) / (64.0 * kRows);
}

}  // namespace vkformer
