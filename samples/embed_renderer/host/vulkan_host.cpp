#include "host/vulkan_host.h"

#include <dlfcn.h>

#include <utility>

namespace sample {

namespace {

vkformer::Error not_found(const std::string& message) {
  return {vkformer::ErrorCode::kNotFound, message};
}

// Why this machine has no device to draw with, in vkformer's words: which packages and variables
// matter. `otherwise`: what to say where vkformer does find one.
vkformer::Error no_device(const vkformer::Error& otherwise) {
  const auto device = vkformer::Device::create();
  return device ? otherwise : device.error();
}

}  // namespace

vkformer::Error driver_error(const std::string& call, VkResult result) {
  return {vkformer::ErrorCode::kDriver, "[" + call + "] failed with VkResult " +
                                            std::to_string(static_cast<int>(result)) +
                                            "; the validation layer may say why."};
}

vkformer::Result<VulkanHost> VulkanHost::create(const HostOptions& options) {
  VulkanHost host;
  if (auto status = host.open_loader(); !status) return status.error();
  if (auto status = host.make_instance(options.instance_extensions); !status) {
    return status.error();
  }
  if (auto status = host.pick_device(options.device); !status) return status.error();
  if (auto status = host.make_device(options.device_extensions); !status) return status.error();
  return host;
}

VulkanHost::VulkanHost(VulkanHost&& other) noexcept
    : load_(other.load_),
      functions_(other.functions_),
      instance_(std::exchange(other.instance_, VkInstance{VK_NULL_HANDLE})),
      physical_(other.physical_),
      properties_(other.properties_),
      device_(std::exchange(other.device_, VkDevice{VK_NULL_HANDLE})),
      queue_(other.queue_),
      family_(other.family_),
      timestamp_period_(other.timestamp_period_),
      enabled_(std::move(other.enabled_)) {}

VulkanHost::~VulkanHost() {
  if (device_ != VK_NULL_HANDLE) functions_.DestroyDevice(device_, nullptr);
  if (instance_ != VK_NULL_HANDLE) functions_.DestroyInstance(instance_, nullptr);
}

void VulkanHost::wait_idle() const {
  functions_.DeviceWaitIdle(device_);
}

vkformer::Status VulkanHost::open_loader() {
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) {
    load_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }
  if (load_ != nullptr) return {};
  return no_device(not_found("There is no Vulkan loader [libvulkan.so.1]."));
}

vkformer::Status VulkanHost::make_instance(const std::vector<std::string>& extensions) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "embed_renderer";
  application.apiVersion = kApiVersion;
  std::vector<const char*> names;
  for (const std::string& name : extensions) names.push_back(name.c_str());
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  const auto create = get<PFN_vkCreateInstance>("vkCreateInstance");
  const VkResult made = create(&info, nullptr, &instance_);
  if (made != VK_SUCCESS) return no_device(driver_error("vkCreateInstance", made));
#define SAMPLE_FUNCTION(name) functions_.name = get<PFN_vk##name>("vk" #name);
#include "host/functions.def"
#undef SAMPLE_FUNCTION
  return {};
}

vkformer::Status VulkanHost::pick_device(const std::string& wanted) {
  uint32_t count = 0;
  functions_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  if (count == 0) return no_device(not_found("There is no Vulkan device."));
  std::vector<VkPhysicalDevice> devices(count);
  functions_.EnumeratePhysicalDevices(instance_, &count, devices.data());
  constexpr VkQueueFlags kNeeded = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  for (const VkPhysicalDevice device : devices) {
    functions_.GetPhysicalDeviceProperties(device, &properties_);
    if (std::string(properties_.deviceName).find(wanted) == std::string::npos) continue;
    functions_.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    functions_.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
    for (uint32_t family = 0; family < count; ++family) {
      if ((families[family].queueFlags & kNeeded) != kNeeded) continue;
      physical_ = device;
      family_ = family;
      const bool times = families[family].timestampValidBits > 0;
      timestamp_period_ = times ? static_cast<double>(properties_.limits.timestampPeriod) : 0.0;
      return {};
    }
  }
  return not_found("Of " + std::to_string(devices.size()) + " Vulkan devices none with [" + wanted +
                   "] in its name has a queue for graphics and compute; see `vkformer devices`.");
}

vkformer::Status VulkanHost::make_device(const std::vector<std::string>& extensions) {
  const auto wanted = vkformer::device_requirements(load_, instance_, physical_, kApiVersion);
  if (!wanted) return wanted.error();
  auto chain = vkformer::FeatureChain::create(*wanted, nullptr, extensions);
  if (!chain) return chain.error();
  enabled_ = *std::move(chain);
  const std::vector<const char*>& names = enabled_->extension_names();
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = enabled_->features();
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  const VkResult made = functions_.CreateDevice(physical_, &info, nullptr, &device_);
  if (made != VK_SUCCESS) {
    device_ = VK_NULL_HANDLE;
    return driver_error("vkCreateDevice", made);
  }
  functions_.GetDeviceQueue(device_, family_, 0, &queue_);
  return {};
}

}  // namespace sample
