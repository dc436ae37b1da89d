// An application's own Vulkan device, for tests of what runs on one.
#pragma once

#include <doctest/doctest.h>

#include <optional>

#include "driver/loader.h"
#include "driver/snapshot.h"
#include "vkformer/vulkan_interop.h"
#include "vulkan/device_impl.h"

namespace vkformer {

// An application's own instance and device, with nothing enabled but what is asked for.
struct HostDevice {
  std::optional<Loader> loader;
  VkInstance instance = VK_NULL_HANDLE;
  InstanceApi api;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t version;
  VkPhysicalDeviceVulkan12Features enabled12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 enabled{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

  explicit HostDevice(uint32_t api_version) : version(api_version) {
    auto opened = Loader::open();
    REQUIRE(opened);
    loader.emplace(std::move(opened).value());
    auto get = loader->get_instance_proc_addr();
    auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = version;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    REQUIRE(create(&info, nullptr, &instance) == VK_SUCCESS);
    auto table = InstanceApi::load(get, instance);
    REQUIRE(table);
    api = *table;
    uint32_t count = 1;
    REQUIRE(api.EnumeratePhysicalDevices(instance, &count, &physical) >= 0);
    auto snapshot = take_snapshot(api, physical, version, 0);
    REQUIRE(snapshot);
    REQUIRE(snapshot->compute_family() >= 0);
    family = static_cast<uint32_t>(snapshot->compute_family());
    if (version >= VK_API_VERSION_1_2 && snapshot->version >= VK_API_VERSION_1_2) {
      enabled12.shaderFloat16 = snapshot->fp16;
      enabled12.timelineSemaphore = VK_TRUE;
      enabled.pNext = &enabled12;
    }
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queues.queueFamilyIndex = family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo made{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    made.pNext = &enabled;
    made.queueCreateInfoCount = 1;
    made.pQueueCreateInfos = &queues;
    REQUIRE(api.CreateDevice(physical, &made, nullptr, &device) == VK_SUCCESS);
    auto get_queue =
        reinterpret_cast<PFN_vkGetDeviceQueue>(api.GetDeviceProcAddr(device, "vkGetDeviceQueue"));
    get_queue(device, family, 0, &queue);
  }

  ~HostDevice() {
    if (device) {
      reinterpret_cast<PFN_vkDestroyDevice>(api.GetDeviceProcAddr(device, "vkDestroyDevice"))(
          device, nullptr);
    }
    if (instance && api.DestroyInstance) api.DestroyInstance(instance, nullptr);
  }

  AdoptedDevice adopted() const {
    AdoptedDevice a;
    a.get_instance_proc_addr = loader->get_instance_proc_addr();
    a.instance = instance;
    a.physical_device = physical;
    a.device = device;
    a.queue_family = family;
    a.queue = queue;
    a.api_version = version;
    a.enabled_features = &enabled;
    return a;
  }
};

inline DeviceOptions no_cache() {
  DeviceOptions options;
  options.cache_directory = "none";
  return options;
}

}  // namespace vkformer
