#include "driver/api_table.h"

namespace vkformer {
namespace {

Error missing(const char* name) {
  return {ErrorCode::kDriver, "[" + std::string(name) +
                                  "] is missing from the Vulkan driver, which does not implement "
                                  "Vulkan 1.1; update the driver"};
}

}  // namespace

Result<InstanceApi> InstanceApi::load(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
  InstanceApi api;
#define VKF_LOAD(name)                                                  \
  api.name = reinterpret_cast<PFN_vk##name>(get(instance, "vk" #name)); \
  if (!api.name) return missing("vk" #name);
  VKF_INSTANCE_FUNCTIONS(VKF_LOAD)
#undef VKF_LOAD
  api.GetInstanceProcAddr = get;
  api.instance = instance;
  return api;
}

Result<DeviceApi> DeviceApi::load(PFN_vkGetDeviceProcAddr get, VkDevice device,
                                  const DeviceApiOptions& options) {
  DeviceApi api;
#define VKF_LOAD(name)                                                \
  api.name = reinterpret_cast<PFN_vk##name>(get(device, "vk" #name)); \
  if (!api.name) return missing("vk" #name);
  VKF_DEVICE_FUNCTIONS(VKF_LOAD)
  if (options.statistics == DeviceApiOptions::Statistics::kOn) {
    VKF_STATISTICS_FUNCTIONS(VKF_LOAD)
  }
  if (options.imports == DeviceApiOptions::Imports::kOn) {
    VKF_IMPORT_FUNCTIONS(VKF_LOAD)
  }
  if (options.occupancy == DeviceApiOptions::Occupancy::kOn) {
    VKF_OCCUPANCY_FUNCTIONS(VKF_LOAD)
  }
#undef VKF_LOAD
  if (options.labels == DeviceApiOptions::Labels::kOn) {
#define VKF_LOAD(name) api.name = reinterpret_cast<PFN_vk##name>(get(device, "vk" #name));
    VKF_DEBUG_FUNCTIONS(VKF_LOAD)
#undef VKF_LOAD
  }
  if (options.timeline == DeviceApiOptions::Timeline::kNone) return api;
  const bool core = options.timeline == DeviceApiOptions::Timeline::kCore;
  api.WaitSemaphores = reinterpret_cast<PFN_vkWaitSemaphores>(
      get(device, core ? "vkWaitSemaphores" : "vkWaitSemaphoresKHR"));
  api.GetSemaphoreCounterValue = reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(
      get(device, core ? "vkGetSemaphoreCounterValue" : "vkGetSemaphoreCounterValueKHR"));
  if (!api.WaitSemaphores) return missing("vkWaitSemaphores");
  if (!api.GetSemaphoreCounterValue) return missing("vkGetSemaphoreCounterValue");
  return api;
}

}  // namespace vkformer
