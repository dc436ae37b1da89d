#include "driver/vk_error.h"

#include <string>

namespace vkformer {

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

Error lost_error(std::string_view what, const std::string& device) {
  return {ErrorCode::kDeviceLost, std::string(what) + " found that the Vulkan device [" + device +
                                      "] was lost (reset, removed or timed out); nothing computed "
                                      "on it is valid, make a new Device"};
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

}  // namespace vkformer
