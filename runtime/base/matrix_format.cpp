#include "base/matrix_format.h"

namespace vkformer {

const char* format_name(MatrixFormat format) {
  switch (format) {
    case MatrixFormat::kF32:
      return "f32";
    case MatrixFormat::kF16:
      return "f16";
    case MatrixFormat::kBF16:
      return "bf16";
    case MatrixFormat::kQ8:
      return "q8";
    case MatrixFormat::kQ4:
      return "q4";
    case MatrixFormat::kQ4M:
      return "q4m";
  }
  return "";
}

std::optional<MatrixFormat> format_from_name(std::string_view name) {
  for (const MatrixFormat format : kMatrixFormats) {
    if (name == format_name(format)) return format;
  }
  return std::nullopt;
}

}  // namespace vkformer
