// The state of a decoding step in a check: five slots, of which three are live. Slots that are not
// live keep what they hold, which is the poison: NaN.
#pragma once

#include "conformance/content.h"
#include "conformance/packed_cache.h"

namespace vkformer::conformance {

inline constexpr int64_t kSlots = 5;  // of which three are live

inline const std::vector<uint32_t> kLiveRows = {4, 0, 3};

// State words: the live slots' entries, the position of the token.
Tensor state_of(uint32_t position, const std::vector<uint32_t>& entries = kLiveRows);

CheckCase step_case();

inline const char* cache_name(CacheFormat format) {
  if (format == CacheFormat::kF32) return "";
  return format == CacheFormat::kF16 ? "f16-" : "q8-";
}

// A cache (R, lines, width) as it is stored, and what is expected of it.
Tensor stored(const Array& cache, CacheFormat format);

Result<Expected> expected_cache(const Array& cache, CacheFormat format);

}  // namespace vkformer::conformance
