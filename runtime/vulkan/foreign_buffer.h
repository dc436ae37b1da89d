// The application's buffers as ours. For the api room, which sees Vulkan handles.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>

#include "vulkan/buffer.h"

namespace vkformer {

// A view of a buffer that the application keeps alive, from its start to byte `bytes`.
Buffer view_foreign_buffer(VkBuffer handle, uint64_t bytes, const std::string& name);
// The Vulkan buffer of ours.
VkBuffer vulkan_handle(const Buffer& buffer);

}  // namespace vkformer
