// Copies between buffers of a device, by the GPU.
#pragma once

#include <span>

#include "vulkan/device.h"

namespace vkformer {

// Offsets and sizes in bytes, multiples of 4.
struct BufferCopy {
  BufferSpan from;
  const Buffer* to = nullptr;
  uint64_t offset = 0;  // in `to`
};

// Behind all that was submitted before; waits until they are done. All in one submit.
Status copy_buffers(VulkanDevice& device, std::span<const BufferCopy> copies);

}  // namespace vkformer
