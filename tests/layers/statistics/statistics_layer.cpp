// A Vulkan layer that writes down what a driver's compiler says of every compute pipeline. The
// program need not ask for it (tools/peer_kernels). The environment:
//   VKFORMER_LAYER_STATISTICS  a folder that is there: log.jsonl, and a file for each text
//
// A line of log.jsonl is one of
//   {"pipeline": H, "constants": [words], "executables": [{"name": N, "subgroup_size": S,
//    "statistics": {name: number}, "texts": [files]}]}
//   {"pipeline": H, "named": N}           by VK_EXT_debug_utils
//   {"pipeline": H, "groups": [x, y, z]}  the first dispatch of that size
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "layer_base.h"

namespace vkformer::testing {
namespace {

#define NEXT_DEVICE(X)                               \
  X(GetDeviceProcAddr)                               \
  X(DestroyDevice)                                   \
  X(CreateComputePipelines)                          \
  X(GetPipelineExecutablePropertiesKHR)              \
  X(GetPipelineExecutableStatisticsKHR)              \
  X(GetPipelineExecutableInternalRepresentationsKHR) \
  X(SetDebugUtilsObjectNameEXT)                      \
  X(CmdBindPipeline)                                 \
  X(CmdDispatch)

struct InstanceState {
  VkInstance instance = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkDestroyInstance DestroyInstance = nullptr;
};

struct DeviceState {
#define MEMBER(name) PFN_vk##name name = nullptr;
  NEXT_DEVICE(MEMBER)
#undef MEMBER
  std::mutex mutex;                            // guards what follows
  std::map<VkCommandBuffer, uint64_t> bound;   // pipelines
  std::set<std::array<uint64_t, 4>> launched;  // pipeline and groups
};

// Never destroyed: a program may end in the middle of a call.
Registry<InstanceState>& instances() {
  static auto* made = new Registry<InstanceState>;
  return *made;
}
Registry<DeviceState>& devices() {
  static auto* made = new Registry<DeviceState>;
  return *made;
}

std::string folder() {
  const char* named = std::getenv("VKFORMER_LAYER_STATISTICS");
  return named == nullptr ? "" : named;
}

void write_file(const std::string& name, const char* mode, const std::string& text) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  const std::string path = folder() + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (file == nullptr) {
    std::fprintf(stderr, "[VKFORMER_LAYER_STATISTICS] %s cannot be opened. Name a folder.\n",
                 path.c_str());
    std::exit(1);
  }
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

void log(uint64_t pipeline, const std::string& what) {
  write_file("log.jsonl", "a", "{\"pipeline\": " + std::to_string(pipeline) + ", " + what + "}\n");
}

// Drivers' names are plain text.
std::string quoted(const char* text) {
  std::string result = "\"";
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == '"' || *c == '\\') result += '\\';
    result += static_cast<unsigned char>(*c) < ' ' ? ' ' : *c;
  }
  return result + '"';
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string number(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return s.value.b32 != VK_FALSE ? "1" : "0";
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return std::to_string(s.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return std::to_string(s.value.u64);
    default:
      return std::to_string(s.value.f64);
  }
}

std::string constants_of(const VkComputePipelineCreateInfo& info) {
  std::vector<std::string> words;
  const VkSpecializationInfo* constants = info.stage.pSpecializationInfo;
  for (uint32_t i = 0; constants != nullptr && i < constants->mapEntryCount; ++i) {
    uint32_t word = 0;
    const VkSpecializationMapEntry& entry = constants->pMapEntries[i];
    std::memcpy(&word, static_cast<const char*>(constants->pData) + entry.offset,
                std::min(sizeof word, entry.size));
    words.push_back(std::to_string(word));
  }
  return joined(words);
}

// --- What a driver says of one executable

class Executable {
 public:
  Executable(const DeviceState& state, VkDevice device, VkPipeline pipeline, uint32_t index)
      : state_(state),
        device_(device),
        info_{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr, pipeline, index} {}

  std::string statistics() const {
    uint32_t count = 0;
    state_.GetPipelineExecutableStatisticsKHR(device_, &info_, &count, nullptr);
    std::vector<VkPipelineExecutableStatisticKHR> list(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    state_.GetPipelineExecutableStatisticsKHR(device_, &info_, &count, list.data());
    std::vector<std::string> parts;
    for (const auto& s : list) parts.push_back(quoted(s.name) + ": " + number(s));
    return joined(parts);
  }

  // The names of files with its texts.
  std::string texts(const std::string& stem) const {
    uint32_t count = 0;
    const auto get = state_.GetPipelineExecutableInternalRepresentationsKHR;
    get(device_, &info_, &count, nullptr);
    std::vector<VkPipelineExecutableInternalRepresentationKHR> list(
        count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
    get(device_, &info_, &count, list.data());  // sizes
    std::vector<std::string> bytes(count), names;
    for (uint32_t i = 0; i < count; ++i) {
      bytes[i].resize(list[i].dataSize);
      list[i].pData = bytes[i].data();
    }
    get(device_, &info_, &count, list.data());
    for (uint32_t i = 0; i < count; ++i) {
      const std::string name = stem + "." + std::to_string(i) + ".txt";
      write_file(name, "w", bytes[i].c_str());  // a text ends with a zero
      names.push_back(quoted(name.c_str()));
    }
    return joined(names);
  }

 private:
  const DeviceState& state_;
  VkDevice device_;
  VkPipelineExecutableInfoKHR info_;
};

void log_pipeline(const DeviceState& state, VkDevice device, VkPipeline pipeline,
                  const VkComputePipelineCreateInfo& info) {
  const auto handle = (uint64_t)pipeline;
  const VkPipelineInfoKHR of{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, pipeline};
  uint32_t count = 0;
  state.GetPipelineExecutablePropertiesKHR(device, &of, &count, nullptr);
  std::vector<VkPipelineExecutablePropertiesKHR> list(
      count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  state.GetPipelineExecutablePropertiesKHR(device, &of, &count, list.data());
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < count; ++i) {
    const Executable executable(state, device, pipeline, i);
    parts.push_back("{\"name\": " + quoted(list[i].name) +
                    ", \"subgroup_size\": " + std::to_string(list[i].subgroupSize) +
                    ", \"statistics\": {" + executable.statistics() + "}, \"texts\": [" +
                    executable.texts(std::to_string(handle) + "." + std::to_string(i)) + "]}");
  }
  log(handle,
      "\"constants\": [" + constants_of(info) + "], \"executables\": [" + joined(parts) + "]");
}

// --- Functions of the layer

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
  state->GetInstanceProcAddr = get;
  state->DestroyInstance =
      reinterpret_cast<PFN_vkDestroyInstance>(get(*instance, "vkDestroyInstance"));
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance instance,
                                           const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) return;
  instances().take(instance)->DestroyInstance(instance, allocator);
}

// With the extension and its feature, where the program does not ask for them.
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
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(
      get_instance(instances().of(physical).instance, "vkCreateDevice"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  feature.pipelineExecutableInfo = VK_TRUE;
  feature.pNext = const_cast<void*>(info->pNext);
  VkDeviceCreateInfo wanted = *info;
  const bool asked = find_in_chain<void>(info->pNext, feature.sType) != nullptr;
  if (!asked) wanted.pNext = &feature;
  std::vector<const char*> extensions(info->ppEnabledExtensionNames,
                                      info->ppEnabledExtensionNames + info->enabledExtensionCount);
  if (!asked) extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  wanted.ppEnabledExtensionNames = extensions.data();
  wanted.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  const VkResult result = create(physical, &wanted, allocator, device);
  if (result != VK_SUCCESS) return result;
  DeviceState* state = devices().add(*device);
#define LOAD(name) state->name = reinterpret_cast<PFN_vk##name>(get(*device, "vk" #name));
  NEXT_DEVICE(LOAD)
#undef LOAD
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) return;
  devices().take(device)->DestroyDevice(device, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                      uint32_t count,
                                                      const VkComputePipelineCreateInfo* infos,
                                                      const VkAllocationCallbacks* allocator,
                                                      VkPipeline* pipelines) {
  DeviceState& state = devices().of(device);
  std::vector<VkComputePipelineCreateInfo> captured(infos, infos + count);
  for (VkComputePipelineCreateInfo& info : captured) {
    info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                  VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  }
  const VkResult result =
      state.CreateComputePipelines(device, cache, count, captured.data(), allocator, pipelines);
  for (uint32_t i = 0; i < count; ++i) {
    if (pipelines[i] != VK_NULL_HANDLE) log_pipeline(state, device, pipelines[i], infos[i]);
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL
SetDebugUtilsObjectNameEXT(VkDevice device, const VkDebugUtilsObjectNameInfoEXT* info) {
  if (info->objectType == VK_OBJECT_TYPE_PIPELINE && info->pObjectName != nullptr) {
    log(info->objectHandle, "\"named\": " + quoted(info->pObjectName));
  }
  const auto next = devices().of(device).SetDebugUtilsObjectNameEXT;
  return next == nullptr ? VK_SUCCESS : next(device, info);
}

VKAPI_ATTR void VKAPI_CALL CmdBindPipeline(VkCommandBuffer commands, VkPipelineBindPoint point,
                                           VkPipeline pipeline) {
  DeviceState& state = devices().of(commands);
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (point == VK_PIPELINE_BIND_POINT_COMPUTE) state.bound[commands] = (uint64_t)pipeline;
  }
  state.CmdBindPipeline(commands, point, pipeline);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                       uint32_t z) {
  DeviceState& state = devices().of(commands);
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    const uint64_t pipeline = state.bound[commands];
    if (state.launched.insert({pipeline, x, y, z}).second) {
      log(pipeline, "\"groups\": [" + std::to_string(x) + ", " + std::to_string(y) + ", " +
                        std::to_string(z) + "]");
    }
  }
  state.CmdDispatch(commands, x, y, z);
}

// --- What the loader asks for

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance, const char* name);

PFN_vkVoidFunction instance_replacement(const char* name) {
  static const Replacement kAll[] = {
      VKF_REPLACED(GetInstanceProcAddr),
      VKF_REPLACED(CreateInstance),
      VKF_REPLACED(DestroyInstance),
      VKF_REPLACED(CreateDevice),
  };
  return find_replacement(kAll, name);
}

PFN_vkVoidFunction device_replacement(const char* name) {
  static const Replacement kAll[] = {
      VKF_REPLACED(GetDeviceProcAddr),      VKF_REPLACED(DestroyDevice),
      VKF_REPLACED(CreateComputePipelines), VKF_REPLACED(SetDebugUtilsObjectNameEXT),
      VKF_REPLACED(CmdBindPipeline),        VKF_REPLACED(CmdDispatch),
  };
  return find_replacement(kAll, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char* name) {
  if (const PFN_vkVoidFunction own = device_replacement(name)) return own;
  return devices().of(device).GetDeviceProcAddr(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance,
                                                             const char* name) {
  if (const PFN_vkVoidFunction own = instance_replacement(name)) return own;
  if (instance == VK_NULL_HANDLE) return nullptr;
  if (const PFN_vkVoidFunction own = device_replacement(name)) return own;
  return instances().of(instance).GetInstanceProcAddr(instance, name);
}

}  // namespace
}  // namespace vkformer::testing

extern "C" VK_LAYER_EXPORT VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* interface) {
  if (interface->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = vkformer::testing::GetInstanceProcAddr;
  interface->pfnGetDeviceProcAddr = vkformer::testing::GetDeviceProcAddr;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
