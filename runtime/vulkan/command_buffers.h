// Command buffers and the labels in them, for RenderDoc, Nsight and the messages of validation.
//
// Every call that makes a layer touch the labels of a command buffer goes through here and takes
// turns with the others. Khronos validation before 1.3.243 forgets them without a lock when a pool
// ends. It crashes if another thread begins a buffer or a label meanwhile (Vulkan-ValidationLayers
// issue 5172).
#pragma once

#include <string>
#include <string_view>

#include "vulkan/context.h"

namespace vkformer {

// A pool of command buffers. `who`, "[transfer]", begins the error's sentence, here and below.
Result<VkCommandPool> make_command_pool(Context& context, VkCommandPoolCreateFlags flags,
                                        const char* who);

// A pool of short-lived commands with its one command buffer.
struct TransientCommands {
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};
// Both or neither.
Result<TransientCommands> make_transient_commands(Context& context, const char* who);

// Makes copies that follow in `commands` wait for whatever kernels, copies and the host wrote
// before.
void copies_follow_writes(const Context& context, VkCommandBuffer commands);
// Makes the commands empty and begins them, for such copies.
Status begin_copies(Context& context, const TransientCommands& transient, const char* who);

Status begin_commands(Context& context, VkCommandBuffer commands, VkCommandBufferUsageFlags usage,
                      const char* who);
// Of the dispatches that follow in a command buffer, where the device lowers it; begin_commands
// lowers that of ours. Who records into the application's buffers leaves the usual one to it.
void lower_occupancy(const Context& context, VkCommandBuffer commands);
void restore_occupancy(const Context& context, VkCommandBuffer commands);
// Makes all command buffers of a pool empty.
Status reset_command_pool(Context& context, VkCommandPool pool, const char* who);
// Destroys a pool with its command buffers.
void destroy_command_pool(const Context& context, VkCommandPool pool);

// Begins the label "`what` `kernel`" in `commands`, and ends the last begun; nothing where
// VK_EXT_debug_utils is not there.
void begin_label(const Context& context, VkCommandBuffer commands, const std::string& what,
                 std::string_view kernel);
void end_label(const Context& context, VkCommandBuffer commands);

}  // namespace vkformer
