#include "vulkan_host.h"

#include <dlfcn.h>

#include <utility>

std::optional<VulkanHost> VulkanHost::create(const std::string& wanted, std::string& problem) {
  VulkanHost host;
  if (!host.open_loader(problem) || !host.make_instance(problem) ||
      !host.pick_device(wanted, problem) || !host.make_device(problem)) {
    return std::nullopt;
  }
  return host;
}

VulkanHost::VulkanHost(VulkanHost&& other) noexcept
    : load_(other.load_),
      instance_(std::exchange(other.instance_, VkInstance{VK_NULL_HANDLE})),
      physical_(other.physical_),
      device_(std::exchange(other.device_, VkDevice{VK_NULL_HANDLE})),
      queue_(other.queue_),
      family_(other.family_),
      name_(std::move(other.name_)) {}

VulkanHost::~VulkanHost() {
  if (device_ != VK_NULL_HANDLE) get<PFN_vkDestroyDevice>("vkDestroyDevice")(device_, nullptr);
  if (instance_ != VK_NULL_HANDLE) {
    get<PFN_vkDestroyInstance>("vkDestroyInstance")(instance_, nullptr);
  }
}

void VulkanHost::wait_idle() const {
  get<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(device_);
}

bool VulkanHost::open_loader(std::string& problem) {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    load_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }
  if (load_ == nullptr) problem = "there is no Vulkan loader (libvulkan.so.1)";
  return load_ != nullptr;
}

bool VulkanHost::make_instance(std::string& problem) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "embed_renderer";
  application.apiVersion = api_version();
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  const auto create = get<PFN_vkCreateInstance>("vkCreateInstance");
  const bool made = create != nullptr && create(&info, nullptr, &instance_) == VK_SUCCESS;
  if (!made) problem = "vkCreateInstance failed";
  return made;
}

bool VulkanHost::pick_device(const std::string& wanted, std::string& problem) {
  uint32_t count = 0;
  const auto list = get<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
  const auto describe = get<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties");
  const auto queues =
      get<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
  list(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  list(instance_, &count, devices.data());
  for (const VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties properties{};
    describe(device, &properties);
    const std::string name = properties.deviceName;
    if (name.find(wanted) == std::string::npos) continue;
    queues(device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    queues(device, &count, families.data());
    for (uint32_t family = 0; family < count; ++family) {
      if ((families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
      physical_ = device;
      family_ = family;
      name_ = name;
      return true;
    }
  }
  problem = "no Vulkan device with \"" + wanted + "\" in its name has a compute queue";
  return false;
}

bool VulkanHost::make_device(std::string& problem) {
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const auto create = get<PFN_vkCreateDevice>("vkCreateDevice");
  if (create(physical_, &info, nullptr, &device_) != VK_SUCCESS) {
    problem = "vkCreateDevice failed";
    return false;
  }
  get<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device_, family_, 0, &queue_);
  return true;
}
