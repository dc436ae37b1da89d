// What a renderer already has: a Vulkan instance, a device and a queue for graphics and compute.
// It stands for an engine's own set-up. Of vkformer it asks only which extensions and features are
// worth enabling for the guest.
#pragma once

#include <vkformer/vulkan_interop.h>
#include <vulkan/vulkan_core.h>

#include <optional>
#include <string>
#include <vector>

#include "host/functions.h"

namespace sample {

// What went wrong in Vulkan, as a sentence.
vkformer::Error driver_error(const std::string& call, VkResult result);

struct HostOptions {
  std::string device;                            // a part of its name; empty: the first that fits
  std::vector<std::string> instance_extensions;  // a window's
  std::vector<std::string> device_extensions;
};

// Owns the objects and destroys them; move-only.
class VulkanHost {
 public:
  static vkformer::Result<VulkanHost> create(const HostOptions& options);
  VulkanHost(VulkanHost&& other) noexcept;
  VulkanHost& operator=(VulkanHost&&) = delete;
  ~VulkanHost();

  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return load_; }
  const Functions& vk() const { return functions_; }
  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_; }
  VkDevice device() const { return device_; }
  uint32_t queue_family() const { return family_; }
  VkQueue queue() const { return queue_; }
  uint32_t api_version() const { return kApiVersion; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  // What was enabled, as an adopted device states it; lives as long as the host and stays in place.
  const VkPhysicalDeviceFeatures2* enabled_features() const { return enabled_->features(); }
  const std::vector<std::string>& enabled_extensions() const { return enabled_->extensions(); }
  // Nanoseconds a tick of timestamps, 0 where the queue has none.
  double timestamp_period() const { return timestamp_period_; }
  // Lets the queue run dry, as a renderer does before it shuts down.
  void wait_idle() const;

 private:
  static constexpr uint32_t kApiVersion = VK_API_VERSION_1_2;

  VulkanHost() = default;
  vkformer::Status open_loader();
  vkformer::Status make_instance(const std::vector<std::string>& extensions);
  vkformer::Status pick_device(const std::string& wanted);
  vkformer::Status make_device(const std::vector<std::string>& extensions);
  template <class Function>
  Function get(const char* name) const {
    return reinterpret_cast<Function>(load_(instance_, name));
  }

  PFN_vkGetInstanceProcAddr load_ = nullptr;
  Functions functions_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  double timestamp_period_ = 0.0;
  // What the renderer needs and what is worth enabling for the guest; of every made host.
  std::optional<vkformer::FeatureChain> enabled_;
};

}  // namespace sample
