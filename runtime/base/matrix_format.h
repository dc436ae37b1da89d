// How the matrices of a model are stored on a device.
#pragma once

#include <cstdint>
#include <optional>

#include "params/weight_blocks.h"
#include "vkformer/choices.h"

namespace vkformer {

// Values are those of params/weight_blocks.h, which has the layouts of the formats in blocks.
enum class MatrixFormat : uint8_t {
  kF32 = 0,
  kF16 = 1,             // two in a word
  kBF16 = kFormatBf16,  // the upper halves of f32 values
  kQ8 = kFormatQ8,      // 8 bits a weight; every 32 along K have a scale
  kQ4 = kFormatQ4,      // 4 bits a weight; a scale
  kQ4M = kFormatQ4M,    // 4 bits a weight; a scale and a minimum
};

inline constexpr MatrixFormat kMatrixFormats[] = {MatrixFormat::kF32,  MatrixFormat::kF16,
                                                  MatrixFormat::kBF16, MatrixFormat::kQ8,
                                                  MatrixFormat::kQ4,   MatrixFormat::kQ4M};

// "f32", "f16", "bf16", "q8", "q4", "q4m".
const char* format_name(MatrixFormat format);
// What users call it, and back; kAsStored names no format of a matrix.
WeightFormat weight_format_of(MatrixFormat format);
std::optional<MatrixFormat> matrix_format_of(WeightFormat format);

constexpr bool is_quantised(MatrixFormat format) {
  return format >= MatrixFormat::kQ8;
}
// Stored in blocks of kBlockSteps steps of K (params/weight_blocks.h)?
constexpr bool in_blocks(MatrixFormat format) {
  return format >= MatrixFormat::kBF16;
}

// 32-bit words of a line of a cache of `width` elements: the values (two of f16 in a word, four of
// q8), filled up to whole runs of 32, then the
// scales in f32.
constexpr uint32_t cache_line_words(CacheFormat format, uint32_t width) {
  const uint32_t runs = (width + kBlockSteps - 1) / kBlockSteps;
  if (format == CacheFormat::kQ8) return runs * 9;
  return format == CacheFormat::kF16 ? runs * 16 : width;
}

// 32-bit words of one block of a panel.
constexpr uint32_t block_words(MatrixFormat format) {
  switch (format) {
    case MatrixFormat::kBF16:
      return 1024;
    case MatrixFormat::kQ8:
      return 512 + 32;
    case MatrixFormat::kQ4:
      return 256 + 32;
    case MatrixFormat::kQ4M:
      return 256 + 64;
    default:
      return 0;
  }
}

// 32-bit words of a panel of 64 columns with K rows.
constexpr uint64_t panel_words(MatrixFormat format, uint64_t k) {
  if (in_blocks(format)) return (k + kBlockSteps - 1) / kBlockSteps * block_words(format);
  return format == MatrixFormat::kF16 ? 32 * k : 64 * k;
}

// 32-bit words of a packed (K, N) matrix, the last panel filled up.
constexpr uint64_t matrix_words(MatrixFormat format, int64_t n, int64_t k) {
  return (static_cast<uint64_t>(n) + 63) / 64 * panel_words(format, static_cast<uint64_t>(k));
}

// Elements from one panel to the next, as MatmulParams::b_panel_stride counts them: 32-bit words
// of a format in blocks.
constexpr uint32_t panel_stride(MatrixFormat format, uint32_t k) {
  return in_blocks(format) ? static_cast<uint32_t>(panel_words(format, k)) : 64 * k;
}

}  // namespace vkformer
