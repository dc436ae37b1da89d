// Wrapping an application's VkDevice. What the application enabled is taken from its own words,
// because Vulkan cannot be asked.
#include <algorithm>

#include "base/message.h"
#include "vkformer/vulkan_interop.h"
#include "vulkan/buffer_tables.h"
#include "vulkan/device_impl.h"
#include "vulkan/matrix_units.h"

namespace vkformer {
namespace {

struct EnabledFeatures {
  bool fp16 = false;
  bool int64 = false;
  bool timeline = false;
  bool memory_model = false;
  bool device_scope = false;  // of that model
  bool matrix = false;
  bool matrix2 = false;
  bool maintenance4 = false;
  bool subgroup_sizes = false;
  bool tables = false;
};

EnabledFeatures read_chain(const VkPhysicalDeviceFeatures2* features) {
  EnabledFeatures enabled;
  if (!features) return enabled;
  enabled.int64 = features->features.shaderInt64 == VK_TRUE;
  const auto* next = static_cast<const VkBaseInStructure*>(features->pNext);
  // A chain longer than this is a cycle.
  for (int i = 0; next && i < 256; ++i, next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(next);
      enabled.fp16 |= v->shaderFloat16 == VK_TRUE;
      enabled.timeline |= v->timelineSemaphore == VK_TRUE;
      enabled.memory_model |= v->vulkanMemoryModel == VK_TRUE;
      enabled.device_scope |= v->vulkanMemoryModelDeviceScope == VK_TRUE;
      enabled.tables |= TableFeatures::whole(*v);
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES) {
      enabled.tables |= TableFeatures::whole(
          *reinterpret_cast<const VkPhysicalDeviceDescriptorIndexingFeatures*>(next));
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceVulkanMemoryModelFeatures*>(next);
      enabled.memory_model |= v->vulkanMemoryModel == VK_TRUE;
      enabled.device_scope |= v->vulkanMemoryModelDeviceScope == VK_TRUE;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceVulkan13Features*>(next);
      enabled.subgroup_sizes |= v->subgroupSizeControl && v->computeFullSubgroups;
      enabled.maintenance4 |= v->maintenance4 == VK_TRUE;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceMaintenance4Features*>(next);
      enabled.maintenance4 |= v->maintenance4 == VK_TRUE;
    } else if (next->sType == Matrix2Features::kType) {
      enabled.matrix2 |= Matrix2Chain::whole(*reinterpret_cast<const Matrix2Features*>(next));
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceSubgroupSizeControlFeatures*>(next);
      enabled.subgroup_sizes |= v->subgroupSizeControl && v->computeFullSubgroups;
    } else if (next->sType == MatrixFeatures::kType) {
      const auto* v = reinterpret_cast<const MatrixFeatures*>(next);
      enabled.matrix |= v->cooperativeMatrix == VK_TRUE;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceShaderFloat16Int8Features*>(next);
      enabled.fp16 |= v->shaderFloat16 == VK_TRUE;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) {
      const auto* v = reinterpret_cast<const VkPhysicalDeviceTimelineSemaphoreFeatures*>(next);
      enabled.timeline |= v->timelineSemaphore == VK_TRUE;
    }
  }
  // Where buffers are robust, arrays of them would have to be, too, which few drivers offer.
  enabled.tables = enabled.tables && features->features.shaderStorageBufferArrayDynamicIndexing &&
                   !features->features.robustBufferAccess;
  return enabled;
}

bool names(const AdoptedDevice& adopted, const char* extension) {
  const auto& list = adopted.enabled_extensions;
  return std::find(list.begin(), list.end(), extension) != list.end();
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
  const EnabledFeatures enabled = read_chain(adopted.enabled_features);
  const bool core = s.version >= VK_API_VERSION_1_2;
  s.caps.compiler.has_int64 = s.caps.compiler.has_int64 && enabled.int64;
  s.fp16 =
      s.fp16 && enabled.fp16 && (core || names(adopted, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME));
  s.timeline = s.timeline && enabled.timeline &&
               (core || names(adopted, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME));
  s.matrix = s.matrix && s.fp16 && enabled.matrix && enabled.memory_model && enabled.device_scope &&
             names(adopted, kMatrixExtension);
  s.caps.has_matrix2 = s.caps.has_matrix2 && enabled.matrix2 && enabled.maintenance4 &&
                       names(adopted, kMatrix2Extension);
  s.sizes_subgroups = s.sizes_subgroups && enabled.subgroup_sizes &&
                      (s.version >= VK_API_VERSION_1_3 ||
                       names(adopted, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME));
  const bool indexes =
      enabled.tables && (core || names(adopted, VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME));
  if (!indexes) s.caps.compiler.max_table_parts = 0;
  s.leave_out_unsized_units();
  if (!enabled.fp16) s.info.notes.push_back("the application did not enable shaderFloat16");
  if (!enabled.timeline) {
    s.info.notes.push_back("the application did not enable timelineSemaphore; fences are used");
  }
  if (enabled.memory_model && !enabled.device_scope) {
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
  if (names(adopted, VK_EXT_DEBUG_UTILS_EXTENSION_NAME)) {
    wanted.labels = DeviceApiOptions::Labels::kOn;
  }
  VKF_ASSIGN(context.api, DeviceApi::load(instance.GetDeviceProcAddr, context.device, wanted));
  VKF_CHECK(impl->start(s, options, {}));
  return std::shared_ptr<VulkanDevice>(new VulkanDevice(std::move(impl)));
}

// Declared in vulkan_interop.h: it speaks Vulkan on both sides.
Result<DeviceRequirements> device_requirements(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                               VkPhysicalDevice physical_device,
                                               uint32_t api_version) {
  if (!get || !instance || !physical_device) {
    return invalid_argument(
        "[device requirements] get, instance or physical_device is null; pass all three");
  }
  VKF_ASSIGN(const InstanceApi api, InstanceApi::load(get, instance));
  VKF_ASSIGN(const Snapshot s, take_snapshot(api, physical_device, api_version, 0));
  if (!s.unusable.empty()) {
    return unsupported(message({"[device requirements] '", s.caps.name,
                                "' cannot be used: ", s.unusable, "; choose another device"}));
  }
  DeviceRequirements found;
  const bool core = s.version >= VK_API_VERSION_1_2;
  found.shader_int64 = s.caps.compiler.has_int64 ? VK_TRUE : VK_FALSE;
  found.shader_float16 = s.fp16 ? VK_TRUE : VK_FALSE;
  found.timeline_semaphore = s.timeline ? VK_TRUE : VK_FALSE;
  found.cooperative_matrix = s.matrix ? VK_TRUE : VK_FALSE;
  if (s.matrix) found.extensions.push_back(kMatrixExtension);
  if (s.matrix && s.caps.has_matrix2) {
    found.cooperative_matrix2 = VK_TRUE;
    found.extensions.push_back(kMatrix2Extension);
  }
  if (s.matrix && s.sizes_subgroups) {
    found.subgroup_size_control = VK_TRUE;
    if (s.version < VK_API_VERSION_1_3) {
      found.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    }
  }
  found.descriptor_indexing = s.caps.compiler.max_table_parts > 0 ? VK_TRUE : VK_FALSE;
  if (found.descriptor_indexing && !core) {
    found.extensions.push_back(VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME);
  }
  if (s.fp16 && !core) found.extensions.push_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  if (s.timeline && !core) found.extensions.push_back(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
  found.queue_family = static_cast<uint32_t>(s.compute_family());
  for (uint32_t i = 0; i < s.families.size(); ++i) {
    const VkQueueFlags flags = s.families[i].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0 || (flags & VK_QUEUE_GRAPHICS_BIT) != 0) continue;
    found.queue_family = i;
    break;
  }
  for (const char* name :
       {VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME, VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME}) {
    if (!found.low_priority_extension.empty() || !s.offers(name)) continue;
    found.low_priority_extension = name;
    found.extensions.push_back(name);
  }
  return found;
}

}  // namespace vkformer
