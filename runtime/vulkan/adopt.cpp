// Wrapping an application's VkDevice. What the application enabled is taken from its own words,
// because Vulkan cannot be asked.
#include <algorithm>

#include "base/message.h"
#include "driver/feature_chain.h"
#include "vkformer/vulkan_interop.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

bool names(const AdoptedDevice& adopted, const char* extension) {
  const auto& list = adopted.enabled_extensions;
  return std::find(list.begin(), list.end(), extension) != list.end();
}

// What the application enabled, with the extensions that this version wants for it.
Features enabled_features(const AdoptedDevice& adopted, uint32_t version) {
  Features enabled = features_in(adopted.enabled_features);
  for (Features bit = 1; bit <= enabled; bit <<= 1) {
    for (const char* extension : extensions_of(enabled & bit, version)) {
      if (!names(adopted, extension)) enabled &= ~bit;
    }
  }
  // Where buffers are robust, arrays of them would have to be, too, which few drivers offer.
  const bool robust =
      adopted.enabled_features && adopted.enabled_features->features.robustBufferAccess == VK_TRUE;
  return robust ? enabled & ~feature::kTables : enabled;
}

Status check_handles(const AdoptedDevice& adopted) {
  const char* missing = nullptr;
  if (!adopted.queue) missing = "queue";
  if (!adopted.device) missing = "device";
  if (!adopted.physical_device) missing = "physical_device";
  if (!adopted.instance) missing = "instance";
  if (!adopted.get_instance_proc_addr) missing = "get_instance_proc_addr";
  if (missing) {
    return invalid_argument(
        message({"[adopted device] ", missing, " is null; fill every handle of AdoptedDevice"}));
  }
  if (adopted.api_version < VK_API_VERSION_1_1) {
    return invalid_argument(
        "[adopted device] api_version is below Vulkan 1.1, which is needed; raise "
        "VkApplicationInfo::apiVersion and pass the same value");
  }
  if (static_cast<bool>(adopted.queue_lock) != static_cast<bool>(adopted.queue_unlock)) {
    return invalid_argument(
        "[adopted device] only one of queue_lock and queue_unlock is given; give both or neither");
  }
  return {};
}

// What was not enabled is not there.
Result<Snapshot> adopted_snapshot(const AdoptedDevice& adopted, const InstanceApi& api) {
  VKF_ASSIGN(Snapshot s, take_snapshot(api, adopted.physical_device, adopted.api_version, 0));
  if (s.version < VK_API_VERSION_1_1) {
    return unsupported(
        message({"[adopted device] '", s.caps.name,
                 "' offers Vulkan 1.0 only, but 1.1 is needed; choose another device"}));
  }
  const size_t family = adopted.queue_family;
  if (family >= s.families.size() || (s.families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return invalid_argument(
        message({"[adopted device] queue family ", family, " of ", s.families.size(),
                 " cannot compute; pass a queue of a family with VK_QUEUE_COMPUTE_BIT"}));
  }
  const Features enabled = enabled_features(adopted, s.version);
  s.caps.compiler.has_int64 = s.caps.compiler.has_int64 && has_all(enabled, feature::kInt64);
  s.fp16 = s.fp16 && has_all(enabled, feature::kFp16);
  s.timeline = s.timeline && has_all(enabled, feature::kTimeline);
  s.matrix = s.matrix && s.fp16 && has_all(enabled, feature::kUnits);
  s.caps.has_matrix2 = s.caps.has_matrix2 && has_all(enabled, feature::kUnits2);
  s.caps.has_dot8 = s.caps.has_dot8 && has_all(enabled, feature::kDot8);
  s.occupancy = s.occupancy && has_all(enabled, feature::kOccupancy);
  s.sizes_subgroups = s.sizes_subgroups && has_all(enabled, feature::kSubgroupSizes);
  if (!names(adopted, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) s.import_alignment = 0;
  if (!has_all(enabled, feature::kTables)) s.caps.compiler.max_table_parts = 0;
  s.leave_out_unsized_units();
  if (!has_all(enabled, feature::kFp16)) {
    s.info.notes.push_back("the application did not enable shaderFloat16");
  }
  if (!has_all(enabled, feature::kTimeline)) {
    s.info.notes.push_back("the application did not enable timelineSemaphore; fences are used");
  }
  if (has_all(enabled, feature::kMemoryModel) && !has_all(enabled, feature::kDeviceScope)) {
    s.info.notes.push_back(
        "the application enabled vulkanMemoryModel without vulkanMemoryModelDeviceScope, which "
        "atomics then need by the specification; enable both or neither");
  }
  return s;
}

}  // namespace

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::adopt(const AdoptedDevice& adopted,
                                                          const DeviceOptions& options) {
  VKF_CHECK(check_handles(adopted));
  VKF_ASSIGN(const InstanceApi instance,
             InstanceApi::load(adopted.get_instance_proc_addr, adopted.instance));
  VKF_ASSIGN(Snapshot s, adopted_snapshot(adopted, instance));
  VKF_CHECK(clamp_snapshot(s, options, {}));
  auto impl = std::make_unique<Impl>();
  Context& context = impl->context;
  VKF_CHECK(context.take(options));
  context.why_no_capture =
      "[statistics] An adopted device keeps none of its pipelines. Use a device that vkformer "
      "makes.";
  context.device = adopted.device;
  context.queue = adopted.queue;
  context.queue_family = adopted.queue_family;
  context.queue_lock = adopted.queue_lock;
  context.queue_unlock = adopted.queue_unlock;
  context.adopted_cache = adopted.pipeline_cache;
  DeviceApiOptions wanted;
  if (s.timeline) {
    wanted.timeline = s.version >= VK_API_VERSION_1_2 ? DeviceApiOptions::Timeline::kCore
                                                      : DeviceApiOptions::Timeline::kExtension;
  }
  if (s.import_alignment > 0) wanted.imports = DeviceApiOptions::Imports::kOn;
  if (lowers_occupancy(s, options)) wanted.occupancy = DeviceApiOptions::Occupancy::kOn;
  if (names(adopted, VK_EXT_DEBUG_UTILS_EXTENSION_NAME)) {
    wanted.labels = DeviceApiOptions::Labels::kOn;
  }
  VKF_ASSIGN(context.api, DeviceApi::load(instance.GetDeviceProcAddr, context.device, wanted));
  VKF_CHECK(impl->start(s, options, {}));
  return std::shared_ptr<VulkanDevice>(new VulkanDevice(std::move(impl)));
}

}  // namespace vkformer
