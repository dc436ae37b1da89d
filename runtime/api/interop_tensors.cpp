#include "api/interop_tensors.h"

#include <algorithm>

#include "base/guarded.h"
#include "base/message.h"
#include "vulkan/context.h"
#include "vulkan/foreign_buffer.h"

namespace vkformer {

OperatorTensor described(const TensorDesc& desc) {
  const auto words = static_cast<VkDeviceSize>(std::max<int64_t>(1, element_count(desc.shape)));
  return {desc.dtype, desc.shape, desc.bytes != 0 ? desc.bytes : 4 * words};
}

Result<std::map<std::string, TensorPlace>> tensor_places(
    const std::map<std::string, BufferRange>& buffers) {
  return guarded([&]() -> Result<std::map<std::string, TensorPlace>> {
    std::map<std::string, TensorPlace> places;
    for (const auto& [name, range] : buffers) {
      if (range.buffer == VK_NULL_HANDLE) {
        return invalid_argument(
            message({"[", name, "] is given no buffer; leave it out or give one"}));
      }
      auto view = std::make_shared<Buffer>(
          view_foreign_buffer(range.buffer, range.offset + range.bytes, name));
      places[name] = {std::move(view), handle_bits(range.buffer), range.offset, range.bytes};
    }
    return places;
  });
}

}  // namespace vkformer
