// Names of dispatches in command buffers, for RenderDoc, Nsight and the messages of validation.
#pragma once

#include <string>
#include <string_view>

#include "vulkan/context.h"

namespace vkformer {

// Begins the label "`what` `kernel`" in `commands`, and ends the last begun; nothing where
// VK_EXT_debug_utils is not there.
void begin_label(const Context& context, VkCommandBuffer commands, const std::string& what,
                 std::string_view kernel);
void end_label(const Context& context, VkCommandBuffer commands);

// Destroys a pool with its command buffers. Every pool that may have held labels goes this way:
// Khronos validation before 1.3.243 forgets the labels of a command buffer without a lock, and
// crashes if another thread begins one meanwhile (Vulkan-ValidationLayers issue 5172).
void destroy_command_pool(const Context& context, VkCommandPool pool);

}  // namespace vkformer
