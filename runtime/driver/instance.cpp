#include "driver/instance.h"

#include <cstdio>
#include <cstring>

#include "driver/missing_driver.h"
#include "driver/vk_error.h"

namespace vkformer {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VkDebugUtilsMessengerCreateInfoEXT messenger_info(PFN_vkDebugUtilsMessengerCallbackEXT callback,
                                                  Instance* instance) {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = callback;
  info.pUserData = instance;
  return info;
}

bool has_extension(PFN_vkGetInstanceProcAddr get, const char* name) {
  auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
      get(nullptr, "vkEnumerateInstanceExtensionProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(nullptr, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> list(count);
  if (enumerate(nullptr, &count, list.data()) < 0) return false;
  for (const VkExtensionProperties& p : list) {
    if (std::strcmp(p.extensionName, name) == 0) return true;
  }
  return false;
}

bool has_layer(PFN_vkGetInstanceProcAddr get, const char* name) {
  auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      get(nullptr, "vkEnumerateInstanceLayerProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> list(count);
  if (enumerate(&count, list.data()) < 0) return false;
  for (const VkLayerProperties& p : list) {
    if (std::strcmp(p.layerName, name) == 0) return true;
  }
  return false;
}

}  // namespace

Instance::Instance(Loader loader, const DeviceOptions& options, PFN_vkGetInstanceProcAddr get)
    : loader_(std::move(loader)),
      get_(get != nullptr ? get : loader_.get_instance_proc_addr()),
      log_(options.log) {
  if (options.allocator == nullptr) return;
  own_allocator_ = *options.allocator;
  allocator_ = &own_allocator_;
}

Result<std::unique_ptr<Instance>> Instance::create(const DeviceOptions& options,
                                                   PFN_vkGetInstanceProcAddr get) {
  VKF_ASSIGN(Loader loader, Loader::open());
  std::unique_ptr<Instance> self(new Instance(std::move(loader), options, get));
  VKF_CHECK(self->make(options));
  return self;
}

VKAPI_ATTR VkBool32 VKAPI_CALL Instance::hand_on_message(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
    const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  const char* text = data && data->pMessage ? data->pMessage : "";
  const LogFunction& log = static_cast<const Instance*>(self)->log_;
  if (log) {
    const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    log(error ? LogLevel::kError : LogLevel::kWarning, std::string("[validation] ") + text);
  } else {
    std::fprintf(stderr, "vulkan validation: %s\n", text);
  }
  return VK_FALSE;
}

Status Instance::make(const DeviceOptions& options) {
  const PFN_vkGetInstanceProcAddr get = get_;
  auto enumerate_version =
      reinterpret_cast<PFN_vkEnumerateInstanceVersion>(get(nullptr, "vkEnumerateInstanceVersion"));
  auto create_instance = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  uint32_t offered = VK_API_VERSION_1_0;
  if (enumerate_version) enumerate_version(&offered);
  if (!create_instance || offered < VK_API_VERSION_1_1) {
    return unsupported("[Vulkan] the loader offers Vulkan 1.0 only, but 1.1 is needed; update it");
  }
  version_ = offered < VK_API_VERSION_1_3 ? offered : VK_API_VERSION_1_3;

  std::vector<const char*> layers, extensions;
  if (options.validation) {
    if (has_layer(get, kValidationLayer)) {
      layers.push_back(kValidationLayer);
    } else {
      validation_missing_ = true;
    }
  }
  debug_utils_ = has_extension(get, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (debug_utils_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const bool portability = has_extension(get, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
  if (portability) extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "vkformer";
  application.pEngineName = "vkformer";
  application.apiVersion = version_;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  if (portability) info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkInstance made = VK_NULL_HANDLE;
  const VkResult result = create_instance(&info, allocator_, &made);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return missing_driver("vkCreateInstance failed with VK_ERROR_INCOMPATIBLE_DRIVER (-9)");
  }
  if (result != VK_SUCCESS) return vk_error(result, "[Vulkan] vkCreateInstance");
  instance_ = made;
  auto api = InstanceApi::load(get, instance_);
  if (!api) return api.error();
  api_ = *api;
  if (!layers.empty() && debug_utils_) add_messenger();
  return {};
}

void Instance::add_messenger() {
  auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      get_(instance_, "vkCreateDebugUtilsMessengerEXT"));
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(hand_on_message, this);
  // Without a messenger the layer still logs by its own means.
  if (create && create(instance_, &info, allocator_, &messenger_) != VK_SUCCESS) {
    messenger_ = VK_NULL_HANDLE;
  }
}

Instance::~Instance() {
  if (!instance_) return;
  const PFN_vkGetInstanceProcAddr get = get_;
  if (messenger_) {
    auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        get(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy) destroy(instance_, messenger_, allocator_);
  }
  auto destroy = reinterpret_cast<PFN_vkDestroyInstance>(get(instance_, "vkDestroyInstance"));
  if (destroy) destroy(instance_, allocator_);
}

Result<std::vector<VkPhysicalDevice>> Instance::physical_devices() const {
  uint32_t count = 0;
  VkResult result = api_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  if (result != VK_SUCCESS) return vk_error(result, "[Vulkan] vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  result = api_.EnumeratePhysicalDevices(instance_, &count, devices.data());
  if (result < 0) return vk_error(result, "[Vulkan] vkEnumeratePhysicalDevices");
  devices.resize(count);
  return devices;
}

}  // namespace vkformer
