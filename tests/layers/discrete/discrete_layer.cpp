// A Vulkan layer for tests. It presents a driver whose memory the host can map as a discrete GPU,
// and counts submits, waits, maps and copies.
//
// Memory that it presents, by the environment variable VKFORMER_LAYER_MEMORY:
//   discrete       (default) heap 0: device memory that the host cannot map; heap 1: host memory,
//                  with a coherent type and a coherent and cached type
//   small-bar      the same, and heap 2: 256 MiB of device memory that the host can map
//   resizable-bar  as discrete, and the host can map all of heap 0 by its own type
//   driver         the driver's own memory; the layer only counts
// Further variables:
//   VKFORMER_LAYER_HEAP    bytes that heap 0 has at most
//   VKFORMER_LAYER_TYPE    discrete (default), or driver: the device type that it presents
//   VKFORMER_LAYER_COUNTS  a file: the counts are added as a line of JSON at vkDestroyInstance
//
// One memory type of the driver backs all types that the layer presents. So the layer
// fits software drivers, which have one type; of other drivers it uses one mappable type. It
// replaces core functions, which this project calls, and of their aliases in extensions only
// those of timeline semaphores.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "layer_state.h"

namespace vkformer::testing {
namespace {

constexpr VkDeviceSize kSmallHeapBytes = 256ull << 20;

bool environment_is(const char* name, const char* value) {
  const char* set = std::getenv(name);
  return set != nullptr && std::strcmp(set, value) == 0;
}

// The driver's type that stands for all: one that the host maps coherently, if possible in the
// device's memory. A Vulkan driver always has a coherent type.
uint32_t backing_type(const VkPhysicalDeviceMemoryProperties& real) {
  constexpr VkMemoryPropertyFlags kCoherent =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (const VkMemoryPropertyFlags wanted :
       {kCoherent | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, kCoherent}) {
    for (uint32_t i = 0; i < real.memoryTypeCount; ++i) {
      if ((real.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
    }
  }
  return 0;
}

// Types in the order that Vulkan asks for: a type with fewer properties comes first.
Presented present(const VkPhysicalDeviceMemoryProperties& real) {
  constexpr VkMemoryPropertyFlags kCoherent =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  Presented r;
  if (environment_is("VKFORMER_LAYER_MEMORY", "driver")) {
    r.memory = real;
    return r;
  }
  r.own = true;
  r.backing = backing_type(real);
  const VkDeviceSize bytes = real.memoryHeaps[real.memoryTypes[r.backing].heapIndex].size;
  VkPhysicalDeviceMemoryProperties& m = r.memory;
  m.memoryHeapCount = 2;
  const char* heap = std::getenv("VKFORMER_LAYER_HEAP");
  const VkDeviceSize own = heap == nullptr ? bytes : std::strtoull(heap, nullptr, 10);
  m.memoryHeaps[0] = {std::min(bytes, own), VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  m.memoryHeaps[1] = {bytes, 0};
  m.memoryTypeCount = 3;
  m.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  m.memoryTypes[1] = {kCoherent, 1};
  m.memoryTypes[2] = {kCoherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
  const bool small = environment_is("VKFORMER_LAYER_MEMORY", "small-bar");
  if (small) {
    r.small_heap_bytes = std::min(bytes, kSmallHeapBytes);
    m.memoryHeaps[m.memoryHeapCount++] = {r.small_heap_bytes, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  }
  if (small || environment_is("VKFORMER_LAYER_MEMORY", "resizable-bar")) {
    m.memoryTypes[m.memoryTypeCount++] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kCoherent,
                                          small ? 2u : 0u};
  }
  return r;
}

// --- Instances and physical devices

VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkInstance* instance) {
  auto* link = layer_link<VkLayerInstanceCreateInfo>(info->pNext,
                                                     VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const auto get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const VkResult result = create(info, allocator, instance);
  if (result != VK_SUCCESS) return result;
  InstanceState* state = instances().add(*instance);
  state->instance = *instance;
#define LOAD(name) state->next.name = reinterpret_cast<PFN_vk##name>(get(*instance, "vk" #name));
  NEXT_INSTANCE(LOAD)
#undef LOAD
  return VK_SUCCESS;
}

// A program that is not a test, such as a server, tells its counts by this file.
void append_counts(const char* path) {
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) {
    std::fprintf(stderr, "[VKFORMER_LAYER_COUNTS] %s cannot be opened. Name a file to write.\n",
                 path);
    return;
  }
  const LayerCounts c = ledger().counts();
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::fprintf(file,
               "{\"submits\":%llu,\"command_buffers\":%llu,\"waits\":%llu,\"waits_reached\":%llu,"
               "\"foreign_waits\":%llu,\"polls\":%llu,\"maps\":%llu,\"refused_maps\":%llu,"
               "\"copies\":%llu}\n",
               number(c.submits), number(c.command_buffers), number(c.waits),
               number(c.waits_reached), number(c.foreign_waits), number(c.polls), number(c.maps),
               number(c.refused_maps), number(c.copies));
  std::fclose(file);
}

VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance instance,
                                           const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) return;
  if (const char* path = std::getenv("VKFORMER_LAYER_COUNTS")) append_counts(path);
  const auto state = instances().take(instance);
  state->next.DestroyInstance(instance, allocator);
}

void present_type(VkPhysicalDeviceProperties& properties) {
  if (environment_is("VKFORMER_LAYER_TYPE", "driver")) return;
  properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties(VkPhysicalDevice physical,
                                                       VkPhysicalDeviceProperties* properties) {
  instances().of(physical).next.GetPhysicalDeviceProperties(physical, properties);
  present_type(*properties);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice physical,
                                                        VkPhysicalDeviceProperties2* properties) {
  instances().of(physical).next.GetPhysicalDeviceProperties2(physical, properties);
  present_type(properties->properties);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties* memory) {
  instances().of(physical).next.GetPhysicalDeviceMemoryProperties(physical, memory);
  *memory = present(*memory).memory;
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2* memory) {
  instances().of(physical).next.GetPhysicalDeviceMemoryProperties2(physical, memory);
  const uint32_t heap =
      memory->memoryProperties.memoryTypes[backing_type(memory->memoryProperties)].heapIndex;
  const Presented presented = present(memory->memoryProperties);
  memory->memoryProperties = presented.memory;
  auto* budget = find_in_chain<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      memory->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  if (budget == nullptr || !presented.own) return;
  // All presented heaps lie in the one heap that backs them, so each may use what is left of it.
  const VkDeviceSize left = budget->heapBudget[heap], used = budget->heapUsage[heap];
  std::fill(std::begin(budget->heapBudget), std::end(budget->heapBudget), VkDeviceSize{0});
  std::fill(std::begin(budget->heapUsage), std::end(budget->heapUsage), VkDeviceSize{0});
  for (uint32_t i = 0; i < memory->memoryProperties.memoryHeapCount; ++i) {
    budget->heapBudget[i] = std::min(left, memory->memoryProperties.memoryHeaps[i].size);
    budget->heapUsage[i] = std::min(used, budget->heapBudget[i]);
  }
}

// --- Devices and memory

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical,
                                            const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* allocator,
                                            VkDevice* device) {
  auto* link =
      layer_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const auto get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const auto get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  InstanceState& instance = instances().of(physical);
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(get_instance(instance.instance, "vkCreateDevice"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const VkResult result = create(physical, info, allocator, device);
  if (result != VK_SUCCESS) return result;
  VkPhysicalDeviceMemoryProperties real{};
  instance.next.GetPhysicalDeviceMemoryProperties(physical, &real);
  DeviceState* state = devices().add(*device);
  state->presented = present(real);
#define LOAD(name) state->next.name = reinterpret_cast<PFN_vk##name>(get(*device, "vk" #name));
  NEXT_DEVICE(LOAD)
#undef LOAD
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) return;
  const auto state = devices().take(device);
  state->next.DestroyDevice(device, allocator);
}

// The small heap is full at its size, as on hardware: who prefers it must live with that.
VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkDeviceMemory* memory) {
  DeviceState& state = devices().of(device);
  const uint32_t type = info->memoryTypeIndex;
  if (type >= state.presented.memory.memoryTypeCount) return VK_ERROR_VALIDATION_FAILED_EXT;
  std::lock_guard<std::mutex> lock(state.mutex);
  const bool small = state.presented.in_small_heap(type);
  const VkDeviceSize left = state.presented.small_heap_bytes - state.small_heap_used;
  if (small && info->allocationSize > left) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryAllocateInfo translated = *info;
  translated.memoryTypeIndex = state.presented.real_type(type);
  const VkResult result = state.next.AllocateMemory(device, &translated, allocator, memory);
  if (result != VK_SUCCESS) return result;
  state.memory[*memory] = {type, info->allocationSize};
  if (small) state.small_heap_used += info->allocationSize;
  return result;
}

VKAPI_ATTR void VKAPI_CALL FreeMemory(VkDevice device, VkDeviceMemory memory,
                                      const VkAllocationCallbacks* allocator) {
  DeviceState& state = devices().of(device);
  // Under the lock: the driver may give the handle out again at once.
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.memory.find(memory);
  if (found != state.memory.end()) {
    const auto [type, bytes] = found->second;
    if (state.presented.in_small_heap(type)) state.small_heap_used -= bytes;
    state.memory.erase(found);
  }
  state.next.FreeMemory(device, memory, allocator);
}

// Counts a map and says whether the host may have it. Vulkan leaves undefined what a map of such
// memory does; here it fails, so that a test sees the mistake.
bool may_map(DeviceState& state, VkDeviceMemory memory) {
  bool allowed = false;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    const auto found = state.memory.find(memory);
    allowed = found != state.memory.end() && state.presented.mappable(found->second.first);
  }
  ledger().count([&](LayerCounts& c) {
    ++c.maps;
    c.refused_maps += allowed ? 0 : 1;
  });
  return allowed;
}

VKAPI_ATTR VkResult VKAPI_CALL MapMemory(VkDevice device, VkDeviceMemory memory,
                                         VkDeviceSize offset, VkDeviceSize size,
                                         VkMemoryMapFlags flags, void** data) {
  DeviceState& state = devices().of(device);
  if (!may_map(state, memory)) return VK_ERROR_MEMORY_MAP_FAILED;
  return state.next.MapMemory(device, memory, offset, size, flags, data);
}

// Buffers and images share one body; `next` is the function to go on with.
template <auto next, class Resource>
VKAPI_ATTR void VKAPI_CALL Requirements(VkDevice device, Resource resource,
                                        VkMemoryRequirements* needs) {
  DeviceState& state = devices().of(device);
  (state.next.*next)(device, resource, needs);
  state.presented.translate(needs->memoryTypeBits);
}

template <auto next, class Info>
VKAPI_ATTR void VKAPI_CALL Requirements2(VkDevice device, const Info* info,
                                         VkMemoryRequirements2* needs) {
  DeviceState& state = devices().of(device);
  (state.next.*next)(device, info, needs);
  state.presented.translate(needs->memoryRequirements.memoryTypeBits);
}

VKAPI_ATTR VkResult VKAPI_CALL GetMemoryHostPointerPropertiesEXT(
    VkDevice device, VkExternalMemoryHandleTypeFlagBits type, const void* pointer,
    VkMemoryHostPointerPropertiesEXT* properties) {
  DeviceState& state = devices().of(device);
  const VkResult result =
      state.next.GetMemoryHostPointerPropertiesEXT(device, type, pointer, properties);
  if (result == VK_SUCCESS) state.presented.translate_imported(properties->memoryTypeBits);
  return result;
}

// --- What the loader asks for

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name);

PFN_vkVoidFunction instance_replacement(const char* name) {
  static const Replacement kAll[] = {
      VKF_REPLACED(GetInstanceProcAddr),
      VKF_REPLACED(CreateInstance),
      VKF_REPLACED(DestroyInstance),
      VKF_REPLACED(CreateDevice),
      VKF_REPLACED(GetPhysicalDeviceProperties),
      VKF_REPLACED(GetPhysicalDeviceProperties2),
      VKF_REPLACED(GetPhysicalDeviceMemoryProperties),
      VKF_REPLACED(GetPhysicalDeviceMemoryProperties2),
  };
  return find_replacement(kAll, name);
}

PFN_vkVoidFunction device_replacement(const char* name) {
  using T = DeviceTable;
  static const Replacement kAll[] = {
      VKF_REPLACED(GetDeviceProcAddr),
      VKF_REPLACED(DestroyDevice),
      VKF_REPLACED(AllocateMemory),
      VKF_REPLACED(FreeMemory),
      VKF_REPLACED(MapMemory),
      VKF_REPLACED(GetMemoryHostPointerPropertiesEXT),
      {"vkGetBufferMemoryRequirements",
       erased(Requirements<&T::GetBufferMemoryRequirements, VkBuffer>)},
      {"vkGetImageMemoryRequirements",
       erased(Requirements<&T::GetImageMemoryRequirements, VkImage>)},
      {"vkGetBufferMemoryRequirements2",
       erased(Requirements2<&T::GetBufferMemoryRequirements2, VkBufferMemoryRequirementsInfo2>)},
      {"vkGetImageMemoryRequirements2",
       erased(Requirements2<&T::GetImageMemoryRequirements2, VkImageMemoryRequirementsInfo2>)},
  };
  const PFN_vkVoidFunction own = find_replacement(kAll, name);
  return own != nullptr ? own : counted_replacement(name);
}

// A function that the driver lacks stays absent, whatever the layer could replace.
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name) {
  const PFN_vkVoidFunction next = devices().of(device).next.GetDeviceProcAddr(device, name);
  const PFN_vkVoidFunction own = device_replacement(name);
  return next != nullptr && own != nullptr ? own : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance,
                                                             const char* name) {
  if (const PFN_vkVoidFunction own = instance_replacement(name)) return own;
  if (instance == VK_NULL_HANDLE) return nullptr;
  const PFN_vkVoidFunction next = instances().of(instance).next.GetInstanceProcAddr(instance, name);
  const PFN_vkVoidFunction own = device_replacement(name);
  return next != nullptr && own != nullptr ? own : next;
}

}  // namespace
}  // namespace vkformer::testing

extern "C" {

VK_LAYER_EXPORT VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* interface) {
  if (interface->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = vkformer::testing::GetInstanceProcAddr;
  interface->pfnGetDeviceProcAddr = vkformer::testing::GetDeviceProcAddr;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

VK_LAYER_EXPORT void vkformer_layer_counts(vkformer::testing::LayerCounts* counts) {
  *counts = vkformer::testing::ledger().counts();
}

VK_LAYER_EXPORT size_t vkformer_layer_waits(vkformer::testing::LayerWait* waits, size_t capacity) {
  return vkformer::testing::ledger().waits(waits, capacity);
}

VK_LAYER_EXPORT uint32_t vkformer_layer_thread() {
  return vkformer::testing::thread_number();
}

VK_LAYER_EXPORT void vkformer_layer_restart() {
  vkformer::testing::ledger().restart();
}
}
