#include "base/matrix_format.h"

namespace vkformer {

const char* format_name(MatrixFormat format) {
  return choice_name(weight_format_of(format));
}

WeightFormat weight_format_of(MatrixFormat format) {
  switch (format) {
    case MatrixFormat::kF32:
      return WeightFormat::kF32;
    case MatrixFormat::kF16:
      return WeightFormat::kF16;
    case MatrixFormat::kBF16:
      return WeightFormat::kBF16;
    case MatrixFormat::kQ8:
      return WeightFormat::kQ8;
    case MatrixFormat::kQ4:
      return WeightFormat::kQ4;
    case MatrixFormat::kQ4M:
      return WeightFormat::kQ4M;
  }
  return WeightFormat::kAsStored;
}

std::optional<MatrixFormat> matrix_format_of(WeightFormat format) {
  for (const MatrixFormat candidate : kMatrixFormats) {
    if (weight_format_of(candidate) == format) return candidate;
  }
  return std::nullopt;
}

}  // namespace vkformer
