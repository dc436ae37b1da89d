// How a key/value cache is stored, by its description. It is F32 (R, lines, width), or U32 (R,
// lines, words) with the words of base/matrix_format.h.
#pragma once

#include <optional>

#include "base/matrix_format.h"
#include "graph/graph.h"

namespace vkformer {

// The format of a cache (R, lines, ...) of lines of `width` elements, or nothing if it is none.
inline std::optional<CacheFormat> cache_format(const TensorDesc& cache, int64_t width) {
  if (cache.shape.size() != 3 || cache.shape[0] < 1 || cache.shape[1] < 1) return std::nullopt;
  if (cache.dtype == DType::kF32 && cache.shape[2] == width) return CacheFormat::kF32;
  for (const CacheFormat format : {CacheFormat::kF16, CacheFormat::kQ8}) {
    const int64_t words = cache_line_words(format, static_cast<uint32_t>(width));
    if (cache.dtype == DType::kU32 && cache.shape[2] == words) return format;
  }
  return std::nullopt;
}

// What a check says of a tensor that is no cache of such lines.
inline std::string cache_wanted(int64_t width) {
  return "F32 (rows, keys, " + std::to_string(width) +
         "), or U32 with the words of halves or bytes";
}

}  // namespace vkformer
