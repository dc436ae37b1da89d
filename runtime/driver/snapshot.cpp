#include "driver/snapshot.h"

#include <algorithm>

#include "driver/feature_chain.h"
#include "driver/matrix_units.h"
#include "driver/vk_error.h"
#include "software/compiler.h"

namespace vkformer {
namespace {

// Of a table of buffers, the parts: what is left beside a kernel's other bindings, which count as
// well.
uint32_t max_table_parts(const VkPhysicalDeviceDescriptorIndexingProperties& limits) {
  constexpr uint32_t kOtherBuffers = 16;
  const uint32_t most = std::min({limits.maxPerStageDescriptorUpdateAfterBindStorageBuffers,
                                  limits.maxDescriptorSetUpdateAfterBindStorageBuffers,
                                  limits.maxPerStageUpdateAfterBindResources});
  return most > kOtherBuffers ? most - kOtherBuffers : 0;
}

constexpr VkSubgroupFeatureFlags kSubgroupNeeds =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
    VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
    VK_SUBGROUP_FEATURE_SHUFFLE_BIT;

std::string version_text(uint32_t v) {
  return std::to_string(VK_API_VERSION_MAJOR(v)) + "." + std::to_string(VK_API_VERSION_MINOR(v)) +
         "." + std::to_string(VK_API_VERSION_PATCH(v));
}

Result<std::vector<std::string>> device_extensions(const InstanceApi& api,
                                                   VkPhysicalDevice physical) {
  uint32_t count = 0;
  VkResult result = api.EnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  if (result == VK_SUCCESS) {
    result = api.EnumerateDeviceExtensionProperties(physical, nullptr, &count, list.data());
  }
  if (result < 0) return vk_error(result, "[Vulkan] vkEnumerateDeviceExtensionProperties");
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.emplace_back(list[i].extensionName);
  return names;
}

DeviceClass device_class(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceClass::kSoftware;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceClass::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceClass::kDiscrete;
    default:
      return DeviceClass::kOther;
  }
}

// A second or less of the slowest operators: on SwiftShader those of two cores do 0.5 Gflop/s
// (docs/reliability.md).
double dispatch_flops(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kSoftware:
      return 5e8;
    case DeviceClass::kDiscrete:
      return 4e10;
    default:
      return 4e9;
  }
}

// Whether a device can be asked which sizes subgroups may have.
bool knows_subgroup_sizes(const Snapshot& s) {
  return s.version >= VK_API_VERSION_1_3 || s.offers(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
}

// Whether a device can be asked about arrays of buffers.
bool knows_tables(const Snapshot& s) {
  return s.version >= VK_API_VERSION_1_2 || s.offers(VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME);
}

// Whether buffers of weights can lie in memory of the host.
bool imports_weights(const InstanceApi& api, const Snapshot& s) {
  if (!s.offers(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) return false;
  VkPhysicalDeviceExternalBufferInfo asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
  asked.usage = kImportedUsage;
  asked.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkExternalBufferProperties found{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  api.GetPhysicalDeviceExternalBufferProperties(s.physical, &asked, &found);
  return (found.externalMemoryProperties.externalMemoryFeatures &
          VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0;
}

// The property structures that a Vulkan 1.1 device, or a newer one, can be asked for.
struct PropertyChain {
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties maintenance3{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties maintenance4{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceDescriptorIndexingProperties indexing{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES};
  // Part of Vulkan 1.2; the extension of older devices would have to be enabled.
  VkPhysicalDeviceFloatControlsProperties floats{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  // Properties of these extensions may be asked for without enabling them.
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV of_nvidia{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCoreProperties2AMD of_amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT imports{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  SubgroupSizes sizes;
  bool has_driver = false;
  bool has_maintenance4 = false;

  void ask(const InstanceApi& api, const Snapshot& s) {
    has_driver =
        s.version >= VK_API_VERSION_1_2 || s.offers(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
    has_maintenance4 = s.version >= VK_API_VERSION_1_3;
    all.pNext = &subgroup;
    subgroup.pNext = &maintenance3;
    maintenance3.pNext = &id;
    void** tail = &id.pNext;
    if (has_driver) {
      *tail = &driver;
      tail = &driver.pNext;
    }
    if (has_maintenance4) {
      *tail = &maintenance4;
      tail = &maintenance4.pNext;
    }
    if (knows_tables(s)) {
      *tail = &indexing;
      tail = &indexing.pNext;
    }
    if (s.version >= VK_API_VERSION_1_2) {
      *tail = &floats;
      tail = &floats.pNext;
    }
    if (s.offers(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
      *tail = &of_nvidia;
      tail = &of_nvidia.pNext;
    }
    if (s.offers(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)) {
      *tail = &of_amd;
      tail = &of_amd.pNext;
    }
    if (s.offers(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
      *tail = &imports;
      tail = &imports.pNext;
    }
    if (knows_subgroup_sizes(s)) *tail = &sizes.range;
    api.GetPhysicalDeviceProperties2(s.physical, &all);
  }
};

// Where modes of different widths depend on each other, setting one asks for the others.
ArithmeticModes arithmetic_of(const VkPhysicalDeviceFloatControlsProperties& p) {
  const auto apart = [](VkShaderFloatControlsIndependence of) {
    return of != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  };
  return {.flush_denormals =
              p.shaderDenormFlushToZeroFloat32 != 0 && apart(p.denormBehaviorIndependence),
          .round_to_even = p.shaderRoundingModeRTEFloat32 != 0 && apart(p.roundingModeIndependence),
          .keep_specials = p.shaderSignedZeroInfNanPreserveFloat32 != 0};
}

// What can be asked for: features of extensions that are offered, or of a core version.
Features askable(const Snapshot& s) {
  Features all = feature::kInt64 | feature::kFp16 | feature::kTimeline | feature::kSubgroupSizes |
                 feature::kTables | feature::kDot8 | feature::kOccupancy;
  if (s.version >= VK_API_VERSION_1_2) all |= feature::kUnits;
  if (s.version >= VK_API_VERSION_1_3) all |= feature::kUnits2;
  for (Features bit = 1; bit <= all; bit <<= 1) {
    for (const char* extension : extensions_of(all & bit, s.version)) {
      if (!s.offers(extension)) all &= ~bit;
    }
  }
  return all;
}

Status ask_features(const InstanceApi& api, Snapshot& s, PropertyChain& chain) {
  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  FeatureStructs structs;
  VKF_CHECK(structs.ask(askable(s), all));
  api.GetPhysicalDeviceFeatures2(s.physical, &all);
  const Features offered = features_in(&all);
  s.fp16 = has_all(offered, feature::kFp16);
  s.caps.compiler.has_int64 = has_all(offered, feature::kInt64);
  s.timeline = has_all(offered, feature::kTimeline);
  s.caps.has_dot8 = has_all(offered, feature::kDot8);
  s.occupancy = has_all(offered, feature::kOccupancy);
  chain.sizes.offered = has_all(offered, feature::kSubgroupSizes);
  // What has kernels with tables is a software device; no other needs them enabled.
  if (has_all(offered, feature::kTables) && s.caps.device_class == DeviceClass::kSoftware) {
    s.caps.compiler.max_table_parts = max_table_parts(chain.indexing);
  }
  if (!has_all(offered, feature::kUnits)) return {};
  s.caps.matrix_units = matrix_units_of(api.GetInstanceProcAddr, api.instance, s.physical);
  s.matrix = s.fp16 && !s.caps.matrix_units.empty();
  s.caps.has_matrix2 = has_all(offered, feature::kUnits2);
  return {};
}

// What the device has and this build lacks kernels for (VKFORMER_TIER, VKFORMER_INT64,
// VKFORMER_WITH_SOFTWARE_KERNELS).
void leave_out_absent(Snapshot& s) {
#ifdef VKFORMER_WITHOUT_SUBGROUP
  s.subgroup = false;
  s.info.notes.push_back("vkformer was built without the kernels of the subgroup tier");
#endif
#ifdef VKFORMER_WITHOUT_FP16
  s.fp16 = false;
  s.info.notes.push_back("vkformer was built without the kernels of the fp16 tier");
#endif
  const std::string missing = missing_matrix_kernels(kFeature_matrix);
  if (s.matrix && !missing.empty()) {
    s.matrix = false;
    s.info.notes.push_back("has matrix units (" + units_text(s.caps.matrix_units) + "), but " +
                           missing);
  }
  const std::string missing2 = missing_matrix_kernels(kFeature_matrix2);
  if (s.matrix && s.caps.has_matrix2 && !missing2.empty()) {
    s.caps.has_matrix2 = false;
    s.info.notes.push_back("offers VK_NV_cooperative_matrix2, but " + missing2);
  }
#ifdef VKFORMER_WITHOUT_TABLES
  s.caps.compiler.max_table_parts = 0;
#endif
#ifdef VKFORMER_WITHOUT_INT64
  s.caps.compiler.has_int64 = false;
#endif
}

DeviceLimits limits_of(const PropertyChain& chain) {
  const VkPhysicalDeviceLimits& v = chain.all.properties.limits;
  DeviceLimits r;
  r.max_storage_range = v.maxStorageBufferRange;
  r.max_uniform_range = v.maxUniformBufferRange;
  r.max_storage_buffers = std::min({v.maxPerStageDescriptorStorageBuffers,
                                    v.maxDescriptorSetStorageBuffers, v.maxPerStageResources});
  r.max_push_bytes = v.maxPushConstantsSize;
  r.max_shared_bytes = v.maxComputeSharedMemorySize;
  r.max_invocations = v.maxComputeWorkGroupInvocations;
  for (size_t i = 0; i < 3; ++i) {
    r.max_group_size[i] = v.maxComputeWorkGroupSize[i];
    r.max_group_count[i] = v.maxComputeWorkGroupCount[i];
  }
  r.storage_alignment = std::max<uint64_t>(v.minStorageBufferOffsetAlignment, 4);
  r.uniform_alignment = std::max<uint64_t>(v.minUniformBufferOffsetAlignment, 4);
  r.max_allocation = chain.maintenance3.maxMemoryAllocationSize;
  if (chain.has_maintenance4) {
    r.max_allocation = std::min(r.max_allocation, chain.maintenance4.maxBufferSize);
  }
  return r;
}

void describe_driver(const PropertyChain& chain, Snapshot& s) {
  const VkPhysicalDeviceProperties& p = s.properties;
  std::string text = "driver " + version_text(p.driverVersion);
  if (chain.has_driver) {
    text = std::string(chain.driver.driverName) + " " + chain.driver.driverInfo;
  }
  s.driver = {p.vendorID, p.driverVersion, text};
  s.caps.driver = s.info.driver = text;
  s.caps.gpu = gpu_traits(p.vendorID, text);
  static constexpr char kDigits[] = "0123456789abcdef";
  for (uint8_t byte : chain.id.deviceUUID) {
    s.info.uuid += kDigits[byte >> 4];
    s.info.uuid += kDigits[byte & 15];
  }
}

void describe(Snapshot& s) {
  s.info.name = s.caps.name;
  s.info.kind = s.caps.device_class;
  s.info.api_version = version_text(s.properties.apiVersion);
  for (uint32_t i = 0; i < s.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = s.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    s.info.memory_bytes = std::max(s.info.memory_bytes, uint64_t{heap.size});
  }
  if (!s.subgroup) s.info.notes.push_back("lacks the subgroup operations of the subgroup tier");
  if (!s.fp16) s.info.notes.push_back("lacks shaderFloat16, so no fp16 tier");
  if (s.matrix) {
    s.info.notes.push_back(
        "matrix units of f16 with sums in f32: " + units_text(s.caps.matrix_units) +
        ", by subgroups of " + std::to_string(s.caps.unit_lanes));
    s.info.notes.push_back(s.offers("VK_KHR_shader_bfloat16")
                               ? "offers VK_KHR_shader_bfloat16, but vkformer has no kernels for "
                                 "matrix units of bf16"
                               : "lacks VK_KHR_shader_bfloat16, so no matrix units of bf16");
    if (s.caps.has_matrix2) {
      s.info.notes.push_back("attention keeps its scores in the units (VK_NV_cooperative_matrix2)");
    }
  }
  if (!s.caps.has_dot8) {
    s.info.notes.push_back(
        "lacks integer dot products; precision 'int8' multiplies bytes one by one");
  }
  if (!s.timeline) s.info.notes.push_back("lacks timeline semaphores; fences are used");
  const int family = s.compute_family();
  if (family >= 0 && s.families[static_cast<size_t>(family)].timestampValidBits == 0) {
    s.info.notes.push_back("lacks timestamps; no time per operator");
  }
  if (s.version < VK_API_VERSION_1_1) s.unusable = "it offers Vulkan 1.0 only, but 1.1 is needed";
  if (family < 0) s.unusable = "none of its queues can compute";
  if (!s.unusable.empty()) s.info.notes.push_back("cannot be used: " + s.unusable);
}

// The part of DeviceInfo that clamping changes.
void mirror_limits(Snapshot& s) {
  s.info.subgroup_size = s.caps.subgroup_size;
  s.info.max_storage_range = s.caps.limits.max_storage_range;
  s.info.max_shared_bytes = s.caps.limits.max_shared_bytes;
  s.info.max_invocations = s.caps.limits.max_invocations;
}

}  // namespace

bool Snapshot::offers(const char* extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

const char* Snapshot::priority_extension() const {
  for (const char* name :
       {VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME, VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME}) {
    if (offers(name)) return name;
  }
  return nullptr;
}

bool lowers_occupancy(const Snapshot& snapshot, const DeviceOptions& options) {
  return snapshot.occupancy && options.queue_priority == DeviceOptions::QueuePriority::kLow;
}

int Snapshot::compute_family() const {
  for (size_t i = 0; i < families.size(); ++i) {
    const bool compute = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
    if (compute && families[i].queueCount > 0) return static_cast<int>(i);
  }
  return -1;
}

Tier Snapshot::best_tier() const {
  if (!subgroup) return Tier::kBaseline;
  if (!fp16) return Tier::kSubgroup;
  return matrix ? Tier::kMatrix : Tier::kFp16;
}

void Snapshot::leave_out_unsized_units() {
  if (!sizes_subgroups) caps.unit_lanes = caps.subgroup_size;
  if (!matrix || sizes_subgroups || !varies_subgroups) return;
  matrix = false;
  info.notes.push_back("has matrix units (" + units_text(caps.matrix_units) +
                       ") for subgroups of " + std::to_string(caps.subgroup_size) +
                       ", but subgroups may have other sizes and subgroupSizeControl with "
                       "computeFullSubgroups is not there to ask for that one");
}

Result<Snapshot> take_snapshot(const InstanceApi& api, VkPhysicalDevice physical,
                               uint32_t instance_version, int index) {
  Snapshot s;
  s.physical = physical;
  api.GetPhysicalDeviceProperties(physical, &s.properties);
  api.GetPhysicalDeviceMemoryProperties(physical, &s.memory);
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  s.families.resize(count);
  api.GetPhysicalDeviceQueueFamilyProperties(physical, &count, s.families.data());
  s.version = std::min(s.properties.apiVersion, instance_version);
  s.info.index = index;
  s.caps.name = s.properties.deviceName;
  s.caps.device_class = device_class(s.properties.deviceType);
  s.caps.max_dispatch_flops = dispatch_flops(s.caps.device_class);
  VKF_ASSIGN(s.extensions, device_extensions(api, physical));
  if (s.version >= VK_API_VERSION_1_1) {
    if (s.offers(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) {
      s.memory_budget = api.GetPhysicalDeviceMemoryProperties2;
    }
    PropertyChain chain;
    chain.ask(api, s);
    VKF_CHECK(ask_features(api, s, chain));
    s.caps.limits = limits_of(chain);
    s.arithmetic = arithmetic_of(chain.floats);
    if (imports_weights(api, s)) {
      s.import_alignment = chain.imports.minImportedHostPointerAlignment;
    }
    s.caps.subgroup_size = std::max(1u, chain.subgroup.subgroupSize);
    s.caps.compute_units =
        std::max(chain.of_nvidia.shaderSMCount, chain.of_amd.activeComputeUnitCount);
    s.caps.unit_lanes = chain.sizes.size_for(s.caps.matrix_units, s.caps.subgroup_size);
    s.sizes_subgroups = chain.sizes.can_ask_for(s.caps.unit_lanes);
    if (s.sizes_subgroups) {
      s.caps.max_unit_subgroups = chain.sizes.range.maxComputeWorkgroupSubgroups;
    }
    s.varies_subgroups = chain.sizes.may_differ_from(s.caps.subgroup_size);
    s.subgroup = (chain.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                 (chain.subgroup.supportedOperations & kSubgroupNeeds) == kSubgroupNeeds &&
                 s.caps.subgroup_size >= 4;
    s.caps.compiler.has_quads =
        (chain.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_QUAD_BIT) != 0;
    leave_out_absent(s);
    s.leave_out_unsized_units();
    describe_driver(chain, s);
    describe_software_compiler(s.caps);
  }
  describe(s);
  s.caps.tier = s.best_tier();
  if (s.unusable.empty()) s.info.best_tier = s.caps.tier;
  mirror_limits(s);
  return s;
}

Status clamp_snapshot(Snapshot& s, const DeviceOptions& options,
                      std::span<const Quirk> extra_quirks) {
  s.caps.tier = s.best_tier();
  apply_quirks(known_quirks(), s.driver, s.caps, s.info.notes);
  apply_quirks(extra_quirks, s.driver, s.caps, s.info.notes);
  s.info.best_tier = s.caps.tier;
  s.caps.tier = std::min(s.caps.tier, options.tier);
  if (const DeviceProfile* profile = device_profile(options.limits)) {
    s.caps.limits = clamp_limits(s.caps.limits, profile->limits);
    s.caps.tier = std::min(s.caps.tier, profile->max_tier);
    s.caps.compiler.has_int64 = s.caps.compiler.has_int64 && profile->int64;
    s.caps.compiler.max_table_parts = 0;
    s.caps.has_dot8 = false;
    s.timeline = s.timeline && profile->timeline;
  }
  mirror_limits(s);
  return {};
}

}  // namespace vkformer
