#include "vulkan/command_buffers.h"

#include <mutex>

namespace vkformer {
namespace {

// The layer keeps one table of labels for all devices of an instance, and devices may share one.
std::mutex labels_mutex;

}  // namespace

Result<VkCommandPool> make_command_pool(Context& context, VkCommandPoolCreateFlags flags,
                                        const char* who) {
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = flags;
  info.queueFamilyIndex = context.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  VKF_CHECK(context.check_made(
      context.api.CreateCommandPool(context.device, &info, context.allocator, &pool), pool,
      std::string(who) + " vkCreateCommandPool"));
  return pool;
}

Result<TransientCommands> make_transient_commands(Context& context, const char* who) {
  TransientCommands made;
  VKF_ASSIGN(made.pool, make_command_pool(context, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, who));
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = made.pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  const Status allocated =
      context.check(context.api.AllocateCommandBuffers(context.device, &info, &made.commands),
                    std::string(who) + " vkAllocateCommandBuffers");
  if (allocated) return made;
  destroy_command_pool(context, made.pool);
  return allocated.error();
}

Status begin_commands(Context& context, VkCommandBuffer commands, VkCommandBufferUsageFlags usage,
                      const char* who) {
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = usage;
  std::unique_lock lock(labels_mutex);
  const VkResult begun = context.api.BeginCommandBuffer(commands, &info);
  lock.unlock();
  VKF_CHECK(context.check(begun, std::string(who) + " vkBeginCommandBuffer"));
  lower_occupancy(context, commands);
  return {};
}

namespace {

void set_occupancy(const Context& context, VkCommandBuffer commands, float priority) {
  if (context.api.CmdSetComputeOccupancyPriorityNV == nullptr) return;
  const OccupancyParameters parameters{.occupancyPriority = priority};
  context.api.CmdSetComputeOccupancyPriorityNV(commands, &parameters);
}

}  // namespace

void lower_occupancy(const Context& context, VkCommandBuffer commands) {
  set_occupancy(context, commands, kLowOccupancy);
}

void restore_occupancy(const Context& context, VkCommandBuffer commands) {
  set_occupancy(context, commands, kNormalOccupancy);
}

Status reset_command_pool(Context& context, VkCommandPool pool, const char* who) {
  std::unique_lock lock(labels_mutex);
  const VkResult reset = context.api.ResetCommandPool(context.device, pool, 0);
  lock.unlock();
  return context.check(reset, std::string(who) + " vkResetCommandPool");
}

void copies_follow_writes(const Context& context, VkCommandBuffer commands) {
  context.memory_barrier(
      commands,
      VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
          VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
      VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
}

Status begin_copies(Context& context, const TransientCommands& transient, const char* who) {
  VKF_CHECK(reset_command_pool(context, transient.pool, who));
  VKF_CHECK(begin_commands(context, transient.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                           who));
  copies_follow_writes(context, transient.commands);
  return {};
}

void destroy_command_pool(const Context& context, VkCommandPool pool) {
  const std::lock_guard lock(labels_mutex);
  context.api.DestroyCommandPool(context.device, pool, context.allocator);
}

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

}  // namespace vkformer
