#include "vulkan/debug_labels.h"

#include <mutex>

namespace vkformer {
namespace {

// The layer keeps one table of labels for all devices of an instance, and devices may share one.
std::mutex labels_mutex;

}  // namespace

void begin_label(const Context& context, VkCommandBuffer commands, const std::string& what,
                 std::string_view kernel) {
  if (!context.api.CmdBeginDebugUtilsLabelEXT) return;
  const std::string text = what + " " + std::string(kernel);
  VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
  label.pLabelName = text.c_str();
  const std::lock_guard lock(labels_mutex);
  context.api.CmdBeginDebugUtilsLabelEXT(commands, &label);
}

void end_label(const Context& context, VkCommandBuffer commands) {
  if (!context.api.CmdEndDebugUtilsLabelEXT) return;
  const std::lock_guard lock(labels_mutex);
  context.api.CmdEndDebugUtilsLabelEXT(commands);
}

void destroy_command_pool(const Context& context, VkCommandPool pool) {
  const std::lock_guard lock(labels_mutex);
  context.api.DestroyCommandPool(context.device, pool, context.allocator);
}

}  // namespace vkformer
