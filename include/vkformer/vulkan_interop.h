// Adopting the application's own Vulkan device. The one public header that includes Vulkan.
//
// Threading: see queue_lock below. Lifetime: the application's objects must outlive every Device,
// Model and Session made from them; vkformer destroys none of them.
#pragma once

#include <vulkan/vulkan_core.h>

#include <functional>

#include "vkformer/device.h"
#include "vkformer/export.h"

namespace vkformer {

// An application's device, handed over as it is. Nothing beyond Vulkan 1.1 is required of it;
// what the application enabled is stated here because Vulkan cannot be asked.
struct AdoptedDevice {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;  // the application's loader
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t queue_family = 0;  // must support compute
  VkQueue queue = VK_NULL_HANDLE;
  // Version the application gave in VkApplicationInfo::apiVersion; at least 1.1.
  uint32_t api_version = VK_API_VERSION_1_1;
  // The features that were enabled, as passed to vkCreateDevice: the chain may hold
  // VkPhysicalDeviceVulkan11Features, Vulkan12Features, ShaderFloat16Int8, TimelineSemaphore.
  // Null: none are assumed.
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;
  // The device extensions that were enabled.
  std::vector<std::string> enabled_extensions;
  // Called around every vkQueueSubmit when the application submits to the same queue elsewhere:
  // queue_lock() before, queue_unlock() after. Empty: vkformer is the queue's only user.
  std::function<void()> queue_lock;
  std::function<void()> queue_unlock;
};

// Wraps the application's device. `options.device` is ignored; tier and limits clamp as usual.
VKFORMER_API Result<Device> adopt_device(const AdoptedDevice& adopted,
                                         const DeviceOptions& options = {});

}  // namespace vkformer
