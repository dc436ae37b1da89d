#include "vulkan/context.h"

namespace vkformer {
namespace {

Error lost_error(std::string_view what, const std::string& device) {
  return {ErrorCode::kDeviceLost, std::string(what) + " found that the Vulkan device [" + device +
                                      "] was lost (reset, removed or timed out); nothing computed "
                                      "on it is valid, make a new Device"};
}

}  // namespace

const char* vk_result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_NOT_READY:
      return "VK_NOT_READY";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_INCOMPLETE:
      return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL:
      return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default:
      return "an unnamed VkResult";
  }
}

Error vk_error(VkResult result, std::string_view what) {
  const std::string number = std::to_string(static_cast<int>(result));
  std::string message =
      std::string(what) + " failed with " + vk_result_name(result) + " (" + number + "); ";
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return {ErrorCode::kOutOfMemory, message + "free memory or use a smaller model or batch"};
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return {ErrorCode::kNotFound, message + "install a Vulkan driver"};
    case VK_ERROR_DEVICE_LOST:
      return lost_error(what, "unnamed");
    default:
      return {ErrorCode::kDriver, message + "update the driver or choose another device"};
  }
}

Status Context::take(const DeviceOptions& options) {
  if (options.memory_budget == 0) {
    return invalid_argument(
        "[device] memory_budget is 0 bytes, in which nothing fits; give the bytes that vkformer "
        "may "
        "allocate, or leave it at its default");
  }
  log = options.log;
  // The host's allocator need not know of threads.
  compile_threads = options.allocator == nullptr ? options.compile_threads : 0;
  run_job = options.run_job;
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
