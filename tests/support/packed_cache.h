// Key/value caches in words, made and read on the host; conformance checks need the same.
#pragma once

#include "conformance/packed_cache.h"

namespace vkformer::testing {

using conformance::kPackedCaches;
using conformance::packed_cache;
using conformance::unpacked_cache;

// How far a packed element may be from the one that was packed, whose run of 32 has this largest
// magnitude. It is half a step, and what the division may lose.
inline double packing_error(CacheFormat format, double value, double largest) {
  if (format == CacheFormat::kF16) return std::abs(value) / 1024 + 1e-7;
  return largest / 127 * 0.5001 + 1e-7;
}

}  // namespace vkformer::testing
