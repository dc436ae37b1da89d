#include "vulkan/context.h"

#include <algorithm>
#include <utility>

namespace vkformer {

Status Context::take(const DeviceOptions& options) {
  if (options.memory_budget == 0) {
    return invalid_argument(
        "[device] memory_budget is 0 bytes, in which nothing fits; give the bytes that vkformer "
        "may allocate, or leave it at its default");
  }
  log = options.log;
  // The host's allocator need not know of threads.
  const uint32_t compile_threads = options.allocator == nullptr ? options.compile_threads : 0;
  jobs = run_job = options.run_job;
  // Threads of the machine beside the caller's; 0 where it does not say.
  const uint32_t others = std::max(1u, std::thread::hardware_concurrency()) - 1;
  compile_jobs = std::min(compile_threads, others);
  if (!jobs && compile_threads > 0) {
    threads = std::make_unique<JobThreads>(std::max(1u, compile_jobs));
    jobs = [own = threads.get()](std::function<void()> job) { own->run(std::move(job)); };
  }
  memory_budget = options.memory_budget;
  if (options.allocator == nullptr) return {};
  own_allocator = *options.allocator;
  allocator = &own_allocator;
  return {};
}

void Context::say(LogLevel level, const std::string& message) const {
  if (log) log(level, message);
}

Status Context::check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  if (result == VK_ERROR_DEVICE_LOST) {
    const Error error = lost_error(what, caps.name);
    if (!lost.exchange(true)) say(LogLevel::kError, error.message);
    return error;
  }
  return vk_error(result, what);
}

void Context::memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                             VkAccessFlags wrote, VkPipelineStageFlags to,
                             VkAccessFlags reads) const {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = wrote;
  barrier.dstAccessMask = reads;
  api.CmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Status Context::check_alive() const {
  if (!lost.load()) return {};
  return lost_error("[device] an earlier call", caps.name);
}

void Context::set_name(VkObjectType type, uint64_t handle, const std::string& name) const {
  if (!api.SetDebugUtilsObjectNameEXT || name.empty()) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = name.c_str();
  api.SetDebugUtilsObjectNameEXT(device, &info);
}

}  // namespace vkformer
