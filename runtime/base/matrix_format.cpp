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

}  // namespace vkformer
