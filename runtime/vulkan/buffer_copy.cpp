#include "vulkan/buffer_copy.h"

#include <vector>

#include "base/message.h"
#include "vulkan/device_impl.h"

namespace vkformer {

Status copy_buffers(VulkanDevice& device, std::span<const BufferCopy> copies) {
  std::vector<TransferCopy> list;
  for (const BufferCopy& c : copies) {
    if (c.from.offset + c.from.bytes > c.from.buffer->bytes() ||
        c.offset + c.from.bytes > c.to->bytes()) {
      return internal_error(
          message({"[copy] ", c.from.bytes, " bytes do not fit into both of the buffers"}));
    }
    list.push_back({c.from.buffer->impl()->placed.handle, c.to->impl()->placed.handle,
                    VkBufferCopy{c.from.offset, c.offset, c.from.bytes}});
  }
  return list.empty() ? Status{} : device.impl().transfer->copy(list);
}

}  // namespace vkformer
