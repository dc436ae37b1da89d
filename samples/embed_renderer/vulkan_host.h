// What a renderer already has: a Vulkan instance, a device and a queue. Stands for an engine's own
// set-up; there is nothing of vkformer in it.
#pragma once

#include <vulkan/vulkan_core.h>

#include <optional>
#include <string>
#include <vector>

// Owns the objects and destroys them; move-only.
class VulkanHost {
 public:
  // Picks the first device whose name holds `wanted` and that has a queue for graphics and compute,
  // or for compute. On failure `problem` says why.
  static std::optional<VulkanHost> create(const std::string& wanted, std::string& problem);
  VulkanHost(VulkanHost&& other) noexcept;
  VulkanHost& operator=(VulkanHost&&) = delete;
  ~VulkanHost();

  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return load_; }
  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_; }
  VkDevice device() const { return device_; }
  uint32_t queue_family() const { return family_; }
  VkQueue queue() const { return queue_; }
  uint32_t api_version() const { return VK_API_VERSION_1_1; }
  std::string name() const { return name_; }
  // Lets the queue run dry, as a renderer does before it shuts down.
  void wait_idle() const;

 private:
  VulkanHost() = default;
  bool open_loader(std::string& problem);
  bool make_instance(std::string& problem);
  bool pick_device(const std::string& wanted, std::string& problem);
  bool make_device(std::string& problem);
  template <class Function>
  Function get(const char* name) const {
    return reinterpret_cast<Function>(load_(instance_, name));
  }

  PFN_vkGetInstanceProcAddr load_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  std::string name_;
};
