// Key/value caches in words, made and read on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/matrix_format.h"
#include "vkformer/tensor.h"

namespace vkformer::conformance {

inline constexpr CacheFormat kPackedCaches[] = {CacheFormat::kF16, CacheFormat::kQ8};

// The elements of a packed cache (R, lines, words) with lines of `width`.
inline Tensor unpacked_cache(const Tensor& words, CacheFormat format, int64_t width) {
  const int64_t line_words = words.shape[2], lines = words.shape[0] * words.shape[1];
  std::vector<uint32_t> packed(words.bytes.size() / 4);
  std::memcpy(packed.data(), words.bytes.data(), words.bytes.size());
  std::vector<float> values;
  for (int64_t line = 0; line < lines; ++line) {
    const uint32_t* at = packed.data() + line * line_words;
    for (int64_t i = 0; i < width; ++i) {
      if (format == CacheFormat::kF16) {
        values.push_back(float_from_half(static_cast<uint16_t>(at[i / 2] >> (i % 2 * 16))));
        continue;
      }
      float scale = 0;
      std::memcpy(&scale, at + line_words / 9 * 8 + i / 32, 4);
      values.push_back(scale * static_cast<int8_t>(at[i / 4] >> (i % 4 * 8)));
    }
  }
  return Tensor::from_floats({words.shape[0], words.shape[1], width}, values);
}

// A cache (R, lines, width) in words.
inline Tensor packed_cache(const Tensor& cache, CacheFormat format) {
  const std::vector<float> values = *cache.to_floats();
  const int64_t width = cache.shape[2], lines = cache.shape[0] * cache.shape[1];
  const int64_t words = cache_line_words(format, static_cast<uint32_t>(width));
  std::vector<uint32_t> packed(static_cast<size_t>(lines * words));
  for (int64_t line = 0; line < lines; ++line) {
    uint32_t* to = packed.data() + line * words;
    const float* from = values.data() + line * width;
    for (int64_t i = 0; i < width; ++i) {
      if (format == CacheFormat::kF16) {
        to[i / 2] |= uint32_t{half_from_float(from[i])} << (i % 2 * 16);
        continue;
      }
      float largest = 0;
      for (int64_t j = i / 32 * 32; j < std::min(i / 32 * 32 + 32, width); ++j) {
        largest = std::max(largest, std::fabs(from[j]));
      }
      const float scale = largest / 127;
      std::memcpy(to + words / 9 * 8 + i / 32, &scale, 4);
      const auto value = static_cast<int32_t>(std::lround(scale == 0 ? 0 : from[i] / scale));
      to[i / 4] |= (static_cast<uint32_t>(value) & 255u) << (i % 4 * 8);
    }
  }
  Tensor tensor = Tensor::zeros(DType::kU32, {cache.shape[0], cache.shape[1], words});
  std::memcpy(tensor.bytes.data(), packed.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace vkformer::conformance
