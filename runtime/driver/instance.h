// A Vulkan instance of vkformer's own, with the loader that it came from.
#pragma once

#include <memory>
#include <vector>

#include "driver/api_table.h"
#include "driver/loader.h"
#include "vkformer/device.h"

namespace vkformer {

class Instance {
 public:
  // Of the options: validation, where its messages go, and host memory. `get` stands in for the
  // system loader's function (DeviceTweaks); null: that one.
  static Result<std::unique_ptr<Instance>> create(const DeviceOptions& options,
                                                  PFN_vkGetInstanceProcAddr get = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  // The version asked for, at least 1.1.
  uint32_t version() const { return version_; }
  bool debug_utils() const { return debug_utils_; }
  // True where validation was asked for but the layer is not installed.
  bool validation_missing() const { return validation_missing_; }
  Result<std::vector<VkPhysicalDevice>> physical_devices() const;

 private:
  Instance(Loader loader, const DeviceOptions& options, PFN_vkGetInstanceProcAddr get);
  Status make(const DeviceOptions& options);
  static VKAPI_ATTR VkBool32 VKAPI_CALL hand_on_message(
      VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
      const VkDebugUtilsMessengerCallbackDataEXT* data, void* self);
  void add_messenger();

  Loader loader_;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  LogFunction log_;
  VkAllocationCallbacks own_allocator_{};
  const VkAllocationCallbacks* allocator_ = nullptr;  // null, or the copy above
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  InstanceApi api_;
  uint32_t version_ = 0;
  bool debug_utils_ = false;
  bool validation_missing_ = false;
};

}  // namespace vkformer
