// What of a device is worth enabling for vkformer, and the chain and names with which an
// application does it. Declared in vulkan_interop.h: it speaks Vulkan on both sides.
#include <algorithm>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "driver/feature_chain.h"
#include "driver/snapshot.h"
#include "vkformer/vulkan_interop.h"

namespace vkformer {

class FeatureChainState {
 public:
  FeatureStructs structs;
  VkPhysicalDeviceFeatures2 head{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const VkPhysicalDeviceFeatures2* features = nullptr;
  std::vector<std::string> extensions;
  std::vector<const char*> names;
};

namespace {

Features features_of(const DeviceRequirements& wanted) {
  Features features = 0;
  const auto add = [&](VkBool32 asked, Features those) {
    if (asked == VK_TRUE) features |= those;
  };
  add(wanted.shader_int64, feature::kInt64);
  add(wanted.shader_float16, feature::kFp16);
  add(wanted.timeline_semaphore, feature::kTimeline);
  add(wanted.cooperative_matrix, feature::kUnits);
  add(wanted.cooperative_matrix2, feature::kUnits2);
  add(wanted.subgroup_size_control, feature::kSubgroupSizes);
  add(wanted.descriptor_indexing, feature::kTables);
  add(wanted.integer_dot_product, feature::kDot8);
  add(wanted.compute_occupancy_priority, feature::kOccupancy);
  return features;
}

DeviceRequirements requirements_of(const Snapshot& s) {
  const auto bit = [](bool value) { return value ? VK_TRUE : VK_FALSE; };
  DeviceRequirements found;
  found.shader_int64 = bit(s.caps.compiler.has_int64);
  found.shader_float16 = bit(s.fp16);
  found.timeline_semaphore = bit(s.timeline);
  found.cooperative_matrix = bit(s.matrix);
  found.cooperative_matrix2 = bit(s.matrix && s.caps.has_matrix2);
  found.subgroup_size_control = bit(s.matrix && s.sizes_subgroups);
  found.descriptor_indexing = bit(s.caps.compiler.max_table_parts > 0);
  found.integer_dot_product = bit(s.caps.has_dot8);
  found.compute_occupancy_priority = bit(s.occupancy);
  for (const char* name : extensions_of(features_of(found), s.version)) {
    found.extensions.emplace_back(name);
  }
  if (s.import_alignment > 0) {
    found.extensions.emplace_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  found.queue_family = static_cast<uint32_t>(s.compute_family());
  for (uint32_t i = 0; i < s.families.size(); ++i) {
    const VkQueueFlags flags = s.families[i].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0 || (flags & VK_QUEUE_GRAPHICS_BIT) != 0) continue;
    found.queue_family = i;
    break;
  }
  if (const char* name = s.priority_extension()) {
    found.low_priority_extension = name;
    found.extensions.emplace_back(name);
  }
  return found;
}

}  // namespace

Result<DeviceRequirements> device_requirements(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                               VkPhysicalDevice physical_device,
                                               uint32_t api_version) {
  return guarded([&]() -> Result<DeviceRequirements> {
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
    return requirements_of(s);
  });
}

FeatureChain::FeatureChain(std::unique_ptr<FeatureChainState> impl) : impl_(std::move(impl)) {}
FeatureChain::FeatureChain(FeatureChain&&) noexcept = default;
FeatureChain& FeatureChain::operator=(FeatureChain&&) noexcept = default;
FeatureChain::~FeatureChain() = default;

Result<FeatureChain> FeatureChain::create(const DeviceRequirements& wanted,
                                          VkPhysicalDeviceFeatures2* own,
                                          std::span<const std::string> own_extensions) {
  return guarded([&]() -> Result<FeatureChain> {
    if (own && own->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
      return invalid_argument(
          message({"[feature chain] the application's features have the sType ", int{own->sType},
                   ", not VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2; set it"}));
    }
    auto state = std::make_unique<FeatureChainState>();
    VkPhysicalDeviceFeatures2& head = own ? *own : state->head;
    Features features = features_of(wanted);
    // adopt_device would not use tables beside it.
    if (head.features.robustBufferAccess == VK_TRUE) features &= ~feature::kTables;
    VKF_CHECK(state->structs.enable(features, head));
    state->features = &head;
    state->extensions.assign(own_extensions.begin(), own_extensions.end());
    for (const std::string& name : wanted.extensions) {
      auto& list = state->extensions;
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    }
    for (const std::string& name : state->extensions) state->names.push_back(name.c_str());
    return HandleAccess::make<FeatureChain>(std::move(state));
  });
}

const VkPhysicalDeviceFeatures2* FeatureChain::features() const {
  return impl_->features;
}
const std::vector<std::string>& FeatureChain::extensions() const {
  return impl_->extensions;
}
const std::vector<const char*>& FeatureChain::extension_names() const {
  return impl_->names;
}

}  // namespace vkformer
