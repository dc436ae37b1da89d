// Our own tables of Vulkan functions, one per instance and one per device; nothing is global and
// no Vulkan symbol is linked. Tests inject faults by replacing an entry.
#pragma once

#include <vulkan/vulkan_core.h>

#include "base/check.h"
#include "driver/occupancy.h"

namespace vkformer {

#define VKF_INSTANCE_FUNCTIONS(X)              \
  X(DestroyInstance)                           \
  X(EnumeratePhysicalDevices)                  \
  X(EnumerateDeviceExtensionProperties)        \
  X(GetPhysicalDeviceProperties)               \
  X(GetPhysicalDeviceProperties2)              \
  X(GetPhysicalDeviceFeatures2)                \
  X(GetPhysicalDeviceMemoryProperties)         \
  X(GetPhysicalDeviceMemoryProperties2)        \
  X(GetPhysicalDeviceQueueFamilyProperties)    \
  X(GetPhysicalDeviceExternalBufferProperties) \
  X(CreateDevice)                              \
  X(GetDeviceProcAddr)

#define VKF_DEVICE_FUNCTIONS(X)  \
  X(DestroyDevice)               \
  X(GetDeviceQueue)              \
  X(DeviceWaitIdle)              \
  X(QueueSubmit)                 \
  X(QueueWaitIdle)               \
  X(AllocateMemory)              \
  X(FreeMemory)                  \
  X(MapMemory)                   \
  X(CreateBuffer)                \
  X(DestroyBuffer)               \
  X(GetBufferMemoryRequirements) \
  X(BindBufferMemory)            \
  X(CreateFence)                 \
  X(DestroyFence)                \
  X(ResetFences)                 \
  X(GetFenceStatus)              \
  X(WaitForFences)               \
  X(CreateSemaphore)             \
  X(DestroySemaphore)            \
  X(CreateShaderModule)          \
  X(DestroyShaderModule)         \
  X(CreateDescriptorSetLayout)   \
  X(DestroyDescriptorSetLayout)  \
  X(CreatePipelineLayout)        \
  X(DestroyPipelineLayout)       \
  X(CreateComputePipelines)      \
  X(DestroyPipeline)             \
  X(CreatePipelineCache)         \
  X(GetPipelineCacheData)        \
  X(MergePipelineCaches)         \
  X(DestroyPipelineCache)        \
  X(CreateDescriptorPool)        \
  X(DestroyDescriptorPool)       \
  X(AllocateDescriptorSets)      \
  X(UpdateDescriptorSets)        \
  X(CreateCommandPool)           \
  X(DestroyCommandPool)          \
  X(ResetCommandPool)            \
  X(AllocateCommandBuffers)      \
  X(BeginCommandBuffer)          \
  X(EndCommandBuffer)            \
  X(CmdBindPipeline)             \
  X(CmdBindDescriptorSets)       \
  X(CmdPushConstants)            \
  X(CmdDispatch)                 \
  X(CmdDispatchBase)             \
  X(CmdDispatchIndirect)         \
  X(CmdPipelineBarrier)          \
  X(CmdCopyBuffer)               \
  X(CmdCopyImageToBuffer)        \
  X(CmdFillBuffer)               \
  X(CmdUpdateBuffer)             \
  X(CreateQueryPool)             \
  X(DestroyQueryPool)            \
  X(GetQueryPoolResults)         \
  X(CmdResetQueryPool)           \
  X(CmdWriteTimestamp)

// Debug names and labels; null where VK_EXT_debug_utils is not enabled.
#define VKF_DEBUG_FUNCTIONS(X)  \
  X(SetDebugUtilsObjectNameEXT) \
  X(CmdBeginDebugUtilsLabelEXT) \
  X(CmdEndDebugUtilsLabelEXT)

// What the compiler says of pipelines; null where VK_KHR_pipeline_executable_properties is not
// enabled.
#define VKF_STATISTICS_FUNCTIONS(X)     \
  X(GetPipelineExecutablePropertiesKHR) \
  X(GetPipelineExecutableStatisticsKHR) \
  X(GetPipelineExecutableInternalRepresentationsKHR)

// What memory of the host can be; null where VK_EXT_external_memory_host is not enabled.
#define VKF_IMPORT_FUNCTIONS(X) X(GetMemoryHostPointerPropertiesEXT)

// Null where VK_NV_compute_occupancy_priority is not enabled.
#define VKF_OCCUPANCY_FUNCTIONS(X) X(CmdSetComputeOccupancyPriorityNV)

#define VKF_MEMBER(name) PFN_vk##name name = nullptr;

struct InstanceApi {
  VKF_INSTANCE_FUNCTIONS(VKF_MEMBER)
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;  // what it was loaded with
  VkInstance instance = VK_NULL_HANDLE;
  // A missing function is an error that names it.
  static Result<InstanceApi> load(PFN_vkGetInstanceProcAddr get, VkInstance instance);
};

// Which optional functions to look for; what is named must then be there.
struct DeviceApiOptions {
  enum class Timeline : uint8_t { kNone, kCore, kExtension } timeline = Timeline::kNone;
  enum class Labels : uint8_t { kOff, kOn } labels = Labels::kOff;
  enum class Statistics : uint8_t { kOff, kOn } statistics = Statistics::kOff;
  enum class Imports : uint8_t { kOff, kOn } imports = Imports::kOff;
  enum class Occupancy : uint8_t { kOff, kOn } occupancy = Occupancy::kOff;
};

struct DeviceApi {
  VKF_DEVICE_FUNCTIONS(VKF_MEMBER)
  VKF_DEBUG_FUNCTIONS(VKF_MEMBER)
  VKF_STATISTICS_FUNCTIONS(VKF_MEMBER)
  VKF_IMPORT_FUNCTIONS(VKF_MEMBER)
  VKF_OCCUPANCY_FUNCTIONS(VKF_MEMBER)
  PFN_vkWaitSemaphores WaitSemaphores = nullptr;
  PFN_vkGetSemaphoreCounterValue GetSemaphoreCounterValue = nullptr;

  static Result<DeviceApi> load(PFN_vkGetDeviceProcAddr get, VkDevice device,
                                const DeviceApiOptions& options);
};

#undef VKF_MEMBER

}  // namespace vkformer
