// Sizes as kernels take them. Needs: nothing.
#pragma once

#include <cstdint>

namespace vkformer {

// Precondition: 0 <= value < 2^32, as every checked size is.
constexpr uint32_t u32(int64_t value) {
  return static_cast<uint32_t>(value);
}

}  // namespace vkformer
