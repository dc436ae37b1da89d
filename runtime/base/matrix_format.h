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
  // Those of GGUF files, and of MXFP4 in safetensors files, as they are.
  kQ8_0 = kFormatQ8_0,
  kQ4_0 = kFormatQ4_0,
  kQ4_1 = kFormatQ4_1,
  kQ5_0 = kFormatQ5_0,
  kQ5_1 = kFormatQ5_1,
  kIq4Nl = kFormatIq4Nl,
  kMxfp4 = kFormatMxfp4,
  kQ2K = kFormatQ2K,
  kQ3K = kFormatQ3K,
  kQ4K = kFormatQ4K,
  kQ5K = kFormatQ5K,
  kQ6K = kFormatQ6K,
  kIq4Xs = kFormatIq4Xs,
};

inline constexpr MatrixFormat kMatrixFormats[] = {
    MatrixFormat::kF32,   MatrixFormat::kF16,  MatrixFormat::kBF16, MatrixFormat::kQ8,
    MatrixFormat::kQ4,    MatrixFormat::kQ4M,  MatrixFormat::kQ8_0, MatrixFormat::kQ4_0,
    MatrixFormat::kQ4_1,  MatrixFormat::kQ5_0, MatrixFormat::kQ5_1, MatrixFormat::kIq4Nl,
    MatrixFormat::kMxfp4, MatrixFormat::kQ2K,  MatrixFormat::kQ3K,  MatrixFormat::kQ4K,
    MatrixFormat::kQ5K,   MatrixFormat::kQ6K,  MatrixFormat::kIq4Xs};

// "f32", "f16", "bf16", "q8", "q4", "q4m", "q8_0", "q4_k" and so on.
const char* format_name(MatrixFormat format);
// What users call it, and back; kAsStored names no format of a matrix.
WeightFormat weight_format_of(MatrixFormat format);
std::optional<MatrixFormat> matrix_format_of(WeightFormat format);

constexpr bool is_quantized(MatrixFormat format) {
  return format >= MatrixFormat::kQ8;
}
// One of those that files of other programs have, but directories of vkformer have not.
constexpr bool is_gguf_format(MatrixFormat format) {
  return format >= MatrixFormat::kQ8_0;
}
// Stored in blocks of kBlockSteps steps of K (params/weight_blocks.h)?
constexpr bool in_blocks(MatrixFormat format) {
  return format >= MatrixFormat::kBF16;
}

// 32-bit words of a line of a cache of `width` elements. The values, two of f16 in a word or four
// of q8, are filled up to whole runs of 32. The scales follow in f32.
constexpr uint32_t cache_line_words(CacheFormat format, uint32_t width) {
  const uint32_t runs = (width + kBlockSteps - 1) / kBlockSteps;
  if (format == CacheFormat::kQ8) return runs * 9;
  return format == CacheFormat::kF16 ? runs * 16 : width;
}

// What a format in blocks is made of. The functions of weight_blocks.glsl say the same.
struct BlockTraits {
  uint32_t bits = 0;         // Of a value.
  uint32_t scale_words = 0;  // Of 8 columns' scales and minima in a block.
  uint32_t super_words = 0;  // Of 64 columns, before every 8 blocks.
  uint32_t offset = 0;       // Taken off a value.
  bool minima = false;       // One a block, as large as its scale.
  bool half_scales = true;   // Else bfloat16.
};
constexpr BlockTraits block_traits(MatrixFormat format) {
  switch (format) {
    case MatrixFormat::kF32:
    case MatrixFormat::kF16:
      break;
    case MatrixFormat::kBF16:
      return {.bits = 16};
    case MatrixFormat::kQ8:
      return {.bits = 8, .scale_words = 4, .half_scales = false};
    case MatrixFormat::kQ4:
      return {.bits = 4, .scale_words = 4, .offset = 8, .half_scales = false};
    case MatrixFormat::kQ4M:
      return {.bits = 4, .scale_words = 8, .minima = true, .half_scales = false};
    case MatrixFormat::kQ8_0:
      return {.bits = 8, .scale_words = 4};
    case MatrixFormat::kQ4_0:
      return {.bits = 4, .scale_words = 4, .offset = 8};
    case MatrixFormat::kQ4_1:
      return {.bits = 4, .scale_words = 8, .minima = true};
    case MatrixFormat::kQ5_0:
      return {.bits = 5, .scale_words = 4, .offset = 16};
    case MatrixFormat::kQ5_1:
      return {.bits = 5, .scale_words = 8, .minima = true};
    case MatrixFormat::kIq4Nl:
      return {.bits = 4, .scale_words = 4};
    case MatrixFormat::kQ2K:
      return {.bits = 2, .scale_words = 4, .super_words = 64};
    case MatrixFormat::kQ3K:
      return {.bits = 3, .scale_words = 4, .super_words = 32, .offset = 4};
    case MatrixFormat::kIq4Xs:
      return {.bits = 4, .scale_words = 2, .super_words = 32};
    case MatrixFormat::kQ4K:
      return {.bits = 4, .scale_words = 3, .super_words = 64};
    case MatrixFormat::kQ5K:
      return {.bits = 5, .scale_words = 3, .super_words = 64};
    case MatrixFormat::kQ6K:
      return {.bits = 6, .scale_words = 4, .super_words = 32, .offset = 32};
    case MatrixFormat::kMxfp4:
      return {.bits = 4, .scale_words = 2};
  }
  return {};
}

// Are scales multiplied by what every 8 blocks share?
constexpr bool has_supers(MatrixFormat format) {
  return block_traits(format).super_words > 0;
}

// Has a block two scales for a column, one for each 16 steps?
constexpr bool has_scales_of_16(MatrixFormat format) {
  return has_supers(format) && block_traits(format).scale_words == 4;
}

// Do they share what multiplies their minima, too?
constexpr bool super_minima(MatrixFormat format) {
  return block_traits(format).super_words == 64;
}

// Bits of a value that lie apart from its upper ones: 4 of 5 and 6, 2 of 3.
constexpr uint32_t base_bits(MatrixFormat format) {
  const uint32_t bits = block_traits(format).bits;
  return bits == 3 ? 2 : bits == 5 || bits == 6 ? 4 : bits;
}

// 32-bit words of one block of a panel: 32 values of 64 columns, and their scales.
constexpr uint32_t block_words(MatrixFormat format) {
  const BlockTraits of = block_traits(format);
  return kBlockSteps * 64 / 32 * of.bits + 8 * of.scale_words;
}

// 32-bit words of a panel of 64 columns with K rows.
constexpr uint64_t panel_words(MatrixFormat format, uint64_t k) {
  if (!in_blocks(format)) return format == MatrixFormat::kF16 ? 32 * k : 64 * k;
  const uint64_t blocks = (k + kBlockSteps - 1) / kBlockSteps;
  const uint64_t supers = (blocks + kBlocksOfSuper - 1) / kBlocksOfSuper;
  return blocks * block_words(format) + supers * block_traits(format).super_words;
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
