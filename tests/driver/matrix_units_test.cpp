// The size of the subgroups that matrix units work in, where a driver might choose others. A driver
// that says so stands between us and the real one.
#include "driver/matrix_units.h"

#include <algorithm>

#include "driver/feature_chain.h"
#include "support/matrix_units.h"
#include "vulkan/device_impl.h"
#include "vulkan/host_device.h"

namespace vkformer {
namespace {

// What the driver in between says and saw; entry points carry no pointer to it.
struct Between {
  PFN_vkGetInstanceProcAddr get = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 properties = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features = nullptr;
  PFN_vkGetDeviceProcAddr get_device = nullptr;
  PFN_vkCreateComputePipelines pipelines = nullptr;
  bool controls = true;            // subgroupSizeControl and computeFullSubgroups
  std::vector<uint32_t> required;  // size that each pipeline asked for; 0: none, or not full ones
};
Between between;

template <class T>
T* find(void* chain, VkStructureType type) {
  for (auto* next = static_cast<VkBaseOutStructure*>(chain); next; next = next->pNext) {
    if (next->sType == type) return reinterpret_cast<T*>(next);
  }
  return nullptr;
}

VKAPI_ATTR void VKAPI_CALL varying_properties(VkPhysicalDevice physical,
                                              VkPhysicalDeviceProperties2* all) {
  between.properties(physical, all);
  auto* sizes = find<VkPhysicalDeviceSubgroupSizeControlProperties>(
      all->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  if (!sizes) return;
  sizes->minSubgroupSize = 4;
  sizes->maxSubgroupSize = 64;
}

VKAPI_ATTR void VKAPI_CALL lesser_features(VkPhysicalDevice physical,
                                           VkPhysicalDeviceFeatures2* all) {
  between.features(physical, all);
  auto* sizes = find<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      all->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  if (sizes && !between.controls) sizes->computeFullSubgroups = VK_FALSE;
}

VKAPI_ATTR VkResult VKAPI_CALL seen_pipelines(VkDevice device, VkPipelineCache cache,
                                              uint32_t count,
                                              const VkComputePipelineCreateInfo* infos,
                                              const VkAllocationCallbacks* allocator,
                                              VkPipeline* made) {
  for (uint32_t i = 0; i < count; ++i) {
    const VkPipelineShaderStageCreateInfo& stage = infos[i].stage;
    const auto* size = find<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
        const_cast<void*>(stage.pNext),
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    const bool full =
        (stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT) != 0;
    between.required.push_back(size && full ? size->requiredSubgroupSize : 0);
  }
  return between.pipelines(device, cache, count, infos, allocator, made);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction own = between.get_device(device, name);
  if (std::string(name) != "vkCreateComputePipelines") return own;
  between.pipelines = reinterpret_cast<PFN_vkCreateComputePipelines>(own);
  return reinterpret_cast<PFN_vkVoidFunction>(seen_pipelines);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction own = between.get(instance, name);
  const std::string asked = name;
  if (asked == "vkGetPhysicalDeviceProperties2") {
    between.properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(varying_properties);
  }
  if (asked == "vkGetPhysicalDeviceFeatures2") {
    between.features = reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures2>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(lesser_features);
  }
  if (asked == "vkGetDeviceProcAddr") {
    between.get_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(own);
    return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  }
  return own;
}

// A device whose subgroups may have 4 to 64 lanes, whatever the real one says.
Device varying_device(const Loader& loader, bool controls) {
  between = {};
  between.get = loader.get_instance_proc_addr();
  between.controls = controls;
  DeviceTweaks tweaks = test_device_tweaks();
  tweaks.get_instance_proc_addr = instance_function;
  auto device = make_test_device(test_device_options(), tweaks);
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  return *device;
}

bool notes_have(const DeviceInfo& info, const std::string& part) {
  return std::any_of(info.notes.begin(), info.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

// What an application that adopts says it has enabled: all that matrix units use. Taken at its
// word; nothing of it runs here.
struct UnitsEnabled {
  static constexpr Features kAll = feature::kFp16 | feature::kTimeline | feature::kUnits |
                                   feature::kUnits2 | feature::kSubgroupSizes;
  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

  UnitsEnabled() { set(kAll); }
  UnitsEnabled(const UnitsEnabled&) = delete;
  UnitsEnabled& operator=(const UnitsEnabled&) = delete;

  void set(Features features) {
    all.pNext = nullptr;
    structs_ = {};
    REQUIRE(structs_.enable(features, all));
  }

 private:
  FeatureStructs structs_;
};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("pipelines of matrix units ask for full subgroups of one size") {
    if (!testing::units_device()) return;
    const auto loader = Loader::open();
    REQUIRE(loader);
    const Device device = varying_device(*loader, true);
    REQUIRE(vulkan_of(device)->caps().tier == Tier::kMatrix);
    const DeviceCaps& caps = vulkan_of(device)->caps();
    PipelineStore& store = *vulkan_of(device)->impl().pipelines;
    between.required.clear();
    const MatrixUnit unit = caps.matrix_units[0];
    const uint32_t with_units[] = {4 * caps.unit_lanes, unit.m, unit.n, unit.k};
    CHECK(store.get(KernelId::roofline_units__f16_matrix, with_units).ok());
    const uint32_t without[] = {32};
    CHECK(store.get(KernelId::fill_words__u32, without).ok());
    CHECK(between.required == std::vector<uint32_t>{caps.unit_lanes, 0});
  }

  TEST_CASE("matrix units stay off where subgroups may have another size than theirs") {
    if (!testing::units_device()) return;
    const auto loader = Loader::open();
    REQUIRE(loader);
    const Device device = varying_device(*loader, false);
    CHECK(vulkan_of(device)->caps().tier == Tier::kFp16);
    CHECK(notes_have(device.info(), "subgroupSizeControl"));
  }

  TEST_CASE("an adopted device has matrix units if what they need was enabled") {
    if (!testing::units_device()) return;
    const HostDevice host(VK_API_VERSION_1_3);
    between = {};
    between.get = host.loader->get_instance_proc_addr();
    const auto found =
        device_requirements(instance_function, host.instance, host.physical, VK_API_VERSION_1_3);
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    CHECK(found->cooperative_matrix == VK_TRUE);
    CHECK(found->subgroup_size_control == VK_TRUE);
    CHECK(std::count(found->extensions.begin(), found->extensions.end(), kMatrixExtension) == 1);
    UnitsEnabled enabled;
    AdoptedDevice adopted = host.adopted();
    adopted.enabled_features = &enabled.all;
    adopted.enabled_extensions = {kMatrixExtension};
    for (const bool varies : {false, true}) {
      for (const VkBool32 controls : {VK_FALSE, VK_TRUE}) {
        CAPTURE(varies);
        CAPTURE(controls);
        enabled.set(controls == VK_TRUE ? UnitsEnabled::kAll
                                        : UnitsEnabled::kAll & ~feature::kSubgroupSizes);
        adopted.get_instance_proc_addr =
            varies ? instance_function : host.loader->get_instance_proc_addr();
        const auto device = VulkanDevice::adopt(adopted, no_cache());
        REQUIRE_MESSAGE(device.ok(), device.error().message);
        const bool off = varies && controls == VK_FALSE;
        CHECK((*device)->caps().tier == (off ? Tier::kFp16 : Tier::kMatrix));
        CHECK(notes_have((*device)->info(), "subgroupSizeControl") == off);
      }
    }
  }

  TEST_CASE("an adopted device without the memory model's device scope has no matrix units") {
    if (!testing::units_device()) return;
    const HostDevice host(VK_API_VERSION_1_3);
    UnitsEnabled enabled;
    enabled.set(UnitsEnabled::kAll & ~feature::kDeviceScope);
    AdoptedDevice adopted = host.adopted();
    adopted.enabled_features = &enabled.all;
    adopted.enabled_extensions = {kMatrixExtension};
    const auto device = VulkanDevice::adopt(adopted, no_cache());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    CHECK((*device)->caps().tier == Tier::kFp16);
    CHECK(notes_have((*device)->info(), "vulkanMemoryModelDeviceScope"));
  }

  TEST_CASE("an adopted device keeps scores in matrix units if what that needs was enabled") {
    const auto own = testing::units_device();
    if (!own) return;
    const HostDevice host(VK_API_VERSION_1_3);
    const auto found = device_requirements(host.loader->get_instance_proc_addr(), host.instance,
                                           host.physical, VK_API_VERSION_1_3);
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    CHECK((found->cooperative_matrix2 == VK_TRUE) == own->caps().has_matrix2);
    CHECK(std::count(found->extensions.begin(), found->extensions.end(), kMatrix2Extension) ==
          (own->caps().has_matrix2 ? 1 : 0));
    UnitsEnabled enabled;
    AdoptedDevice adopted = host.adopted();
    adopted.enabled_features = &enabled.all;
    const auto has_matrix2 = [&] {
      const auto device = VulkanDevice::adopt(adopted, no_cache());
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      CHECK((*device)->caps().tier == Tier::kMatrix);
      return (*device)->caps().has_matrix2;
    };
    adopted.enabled_extensions = {kMatrixExtension, kMatrix2Extension};
    CHECK(has_matrix2() == own->caps().has_matrix2);
    enabled.set(UnitsEnabled::kAll & ~feature::kMaintenance4);
    CHECK_FALSE(has_matrix2());
    enabled.set(UnitsEnabled::kAll & ~feature::kReductions);
    CHECK_FALSE(has_matrix2());
    enabled.set(UnitsEnabled::kAll);
    adopted.enabled_extensions = {kMatrixExtension};
    CHECK_FALSE(has_matrix2());
    adopted.enabled_extensions = {kMatrixExtension, kMatrix2Extension};
    adopted.api_version = VK_API_VERSION_1_2;
    CHECK_FALSE(has_matrix2());
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("subgroups of matrix units have a lane for every column of a unit") {
    const MatrixUnit dg2[] = {{8, 8, 16}}, xe2[] = {{8, 16, 16}}, amd[] = {{16, 16, 16}};
    const MatrixUnit nvidia[] = {{16, 8, 8}, {16, 16, 16}, {16, 8, 16}};
    SubgroupSizes sizes;
    CHECK(sizes.size_for(dg2, 32) == 32);  // it cannot be asked
    sizes.offered = true;
    sizes.range.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    const auto asked = [&](uint32_t least, uint32_t most, std::span<const MatrixUnit> units) {
      sizes.range.minSubgroupSize = least;
      sizes.range.maxSubgroupSize = most;
      return sizes.size_for(units, 7);
    };
    CHECK(asked(8, 32, dg2) == 8);
    CHECK(asked(16, 32, xe2) == 16);
    CHECK(asked(32, 64, amd) == 7);  // its own
    CHECK(asked(32, 32, nvidia) == 7);
    CHECK(asked(8, 32, nvidia) == 16);
    CHECK(asked(4, 4, dg2) == 7);
    CHECK(asked(8, 32, {}) == 7);
    const MatrixUnit odd[] = {{8, 12, 8}};
    CHECK(asked(8, 32, odd) == 7);
    sizes.offered = false;
    CHECK(asked(8, 32, dg2) == 7);
  }

  TEST_CASE("which sizes of subgroups pipelines can ask for") {
    SubgroupSizes sizes;
    CHECK_FALSE(sizes.can_ask_for(32));
    CHECK_FALSE(sizes.may_differ_from(32));  // nothing is known: there is one size
    sizes.range.minSubgroupSize = 32;
    sizes.range.maxSubgroupSize = 32;
    CHECK_FALSE(sizes.may_differ_from(32));
    sizes.range.maxSubgroupSize = 64;
    CHECK(sizes.may_differ_from(32));
    CHECK(sizes.may_differ_from(64));
    sizes.offered = true;
    CHECK_FALSE(sizes.can_ask_for(32));  // not in compute
    sizes.range.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    CHECK(sizes.can_ask_for(32));
    CHECK(sizes.can_ask_for(64));
    CHECK_FALSE(sizes.can_ask_for(16));
    sizes.offered = false;
    CHECK_FALSE(sizes.can_ask_for(32));
  }
}

}  // namespace vkformer
