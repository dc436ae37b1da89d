// A copy between two buffers, by the GPU.
#pragma once

#include "vulkan/buffer.h"

namespace vkformer {

// Offsets and sizes in bytes.
struct BufferCopy {
  BufferSpan from;
  const Buffer* to = nullptr;
  uint64_t offset = 0;  // in `to`
};

}  // namespace vkformer
