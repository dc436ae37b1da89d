// FNV-1a, 64 bits (Fowler, Noll and Vo, 1991), and how a hash is written.
#pragma once

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace vkformer {

inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325u;

// The hash of what `state` is the hash of, with these bytes after it.
inline uint64_t fnv1a(const void* data, size_t bytes, uint64_t state = kFnvStart) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) state = (state ^ p[i]) * 0x100000001b3u;
  return state;
}

// Hexadecimal, with zeros before it.
inline std::string hex_text(uint64_t value, int digits = 16) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*" PRIx64, digits, value);
  return text;
}

}  // namespace vkformer
