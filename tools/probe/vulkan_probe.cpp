// Small program of tools/setup and tools/test, apart from the library on purpose.
//
//   vulkan_probe           prints one line per Vulkan device; exit code 1 if there is none
//   vulkan_probe --faulty  makes three mistakes that the validation layer must report: a buffer of
//                          size zero, two fills of one buffer without a barrier between them, and,
//                          against best practices, an allocation for one small buffer alone.
//                          tools/test fails when it does not see all: a silent layer proves
//                          nothing.
#include <vulkan/vulkan.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

VkInstance make_instance() {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "vulkan_probe";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  return vkCreateInstance(&info, nullptr, &instance) == VK_SUCCESS ? instance : VK_NULL_HANDLE;
}

std::vector<VkPhysicalDevice> find_devices(VkInstance instance) {
  uint32_t count = 0;
  if (vkEnumeratePhysicalDevices(instance, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkPhysicalDevice> devices(count);
  vkEnumeratePhysicalDevices(instance, &count, devices.data());
  devices.resize(count);
  return devices;
}

VkDevice make_device(VkPhysicalDevice physical) {
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  VkDevice device = VK_NULL_HANDLE;
  return vkCreateDevice(physical, &info, nullptr, &device) == VK_SUCCESS ? device : VK_NULL_HANDLE;
}

// Records the hazard into a command buffer that is never submitted.
void record_hazard(VkDevice device, VkBuffer buffer) {
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VkCommandPool pool = VK_NULL_HANDLE;
  if (vkCreateCommandPool(device, &pool_info, nullptr, &pool) != VK_SUCCESS) return;
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  if (vkAllocateCommandBuffers(device, &allocate, &commands) == VK_SUCCESS) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(commands, &begin);
    vkCmdFillBuffer(commands, buffer, 0, 256, 1);
    vkCmdFillBuffer(commands, buffer, 0, 256, 2);
    vkEndCommandBuffer(commands);
  }
  vkDestroyCommandPool(device, pool, nullptr);
}

int make_mistakes(VkPhysicalDevice physical) {
  VkDevice device = make_device(physical);
  if (device == VK_NULL_HANDLE) return 1;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.size = 0;
  VkBuffer empty = VK_NULL_HANDLE;
  if (vkCreateBuffer(device, &info, nullptr, &empty) == VK_SUCCESS) {
    vkDestroyBuffer(device, empty, nullptr);
  }
  info.size = 256;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vkCreateBuffer(device, &info, nullptr, &buffer) != VK_SUCCESS) return 1;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  uint32_t type = 0;
  while ((needs.memoryTypeBits >> type & 1) == 0) ++type;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  if (vkAllocateMemory(device, &allocate, nullptr, &memory) == VK_SUCCESS &&
      vkBindBufferMemory(device, buffer, memory, 0) == VK_SUCCESS) {
    record_hazard(device, buffer);
  }
  vkDestroyBuffer(device, buffer, nullptr);
  vkFreeMemory(device, memory, nullptr);
  vkDestroyDevice(device, nullptr);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  VkInstance instance = make_instance();
  const std::vector<VkPhysicalDevice> devices =
      instance == VK_NULL_HANDLE ? std::vector<VkPhysicalDevice>{} : find_devices(instance);
  int code = devices.empty() ? 1 : 0;
  if (argc > 1 && std::strcmp(argv[1], "--faulty") == 0) {
    code = devices.empty() ? 1 : make_mistakes(devices.front());
  } else {
    for (VkPhysicalDevice device : devices) {
      VkPhysicalDeviceProperties properties;
      vkGetPhysicalDeviceProperties(device, &properties);
      std::printf("%s\n", properties.deviceName);
    }
  }
  if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
  return code;
}
