#include "driver/feature_chain.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "driver/matrix_units.h"
#include "driver/occupancy.h"

namespace vkformer {
namespace {

// Where a feature's VkBool32 lies.
struct Place {
  VkStructureType type;
  size_t bytes;   // of the struct
  size_t offset;  // of the feature
};

struct Row {
  Features feature;
  Place own;              // in the struct of its extension
  Place core;             // in that of a core version; its bytes are 0 if there is none
  const char* extension;  // that offers it
  uint32_t core_version;  // that has it without the extension
};

#define PLACE(type, Struct, member) \
  { type, sizeof(Struct), offsetof(Struct, member) }
#define CORE_1_2(member)                                                                         \
  PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, VkPhysicalDeviceVulkan12Features, \
        member)
#define CORE_1_3(member)                                                                         \
  PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, VkPhysicalDeviceVulkan13Features, \
        member)
#define OWN(TYPE, Struct, member) PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, Struct, member)
#define MEMORY_MODEL(member) \
  OWN(VULKAN_MEMORY_MODEL_FEATURES, VkPhysicalDeviceVulkanMemoryModelFeatures, member)
#define SUBGROUP_SIZES(member) \
  OWN(SUBGROUP_SIZE_CONTROL_FEATURES, VkPhysicalDeviceSubgroupSizeControlFeatures, member)
#define INDEXING(member) \
  OWN(DESCRIPTOR_INDEXING_FEATURES, VkPhysicalDeviceDescriptorIndexingFeatures, member)

// Of structs that the build's headers may lack.
#define NEWER(Struct, member) PLACE(Struct::kType, Struct, member)

constexpr Place kNowhere{VK_STRUCTURE_TYPE_MAX_ENUM, 0, 0};
constexpr uint32_t kNever = UINT32_MAX;
constexpr Row kRows[] = {
    {feature::kInt64, OWN(FEATURES_2, VkPhysicalDeviceFeatures2, features.shaderInt64), kNowhere,
     nullptr, VK_API_VERSION_1_0},
    {feature::kArrayIndexing,
     OWN(FEATURES_2, VkPhysicalDeviceFeatures2, features.shaderStorageBufferArrayDynamicIndexing),
     kNowhere, nullptr, VK_API_VERSION_1_0},
    {feature::kFp16,
     OWN(SHADER_FLOAT16_INT8_FEATURES, VkPhysicalDeviceShaderFloat16Int8Features, shaderFloat16),
     CORE_1_2(shaderFloat16), VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2},
    {feature::kTimeline,
     OWN(TIMELINE_SEMAPHORE_FEATURES, VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore),
     CORE_1_2(timelineSemaphore), VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2},
    {feature::kMemoryModel, MEMORY_MODEL(vulkanMemoryModel), CORE_1_2(vulkanMemoryModel),
     VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2},
    {feature::kDeviceScope, MEMORY_MODEL(vulkanMemoryModelDeviceScope),
     CORE_1_2(vulkanMemoryModelDeviceScope), VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
     VK_API_VERSION_1_2},
    {feature::kMatrix, NEWER(MatrixFeatures, cooperativeMatrix), kNowhere, kMatrixExtension,
     kNever},
    {feature::kReductions, NEWER(Matrix2Features, cooperativeMatrixReductions), kNowhere,
     kMatrix2Extension, kNever},
    {feature::kConversions, NEWER(Matrix2Features, cooperativeMatrixConversions), kNowhere,
     kMatrix2Extension, kNever},
    {feature::kPerElement, NEWER(Matrix2Features, cooperativeMatrixPerElementOperations), kNowhere,
     kMatrix2Extension, kNever},
    {feature::kMaintenance4,
     OWN(MAINTENANCE_4_FEATURES, VkPhysicalDeviceMaintenance4Features, maintenance4),
     CORE_1_3(maintenance4), VK_KHR_MAINTENANCE_4_EXTENSION_NAME, VK_API_VERSION_1_3},
    {feature::kSubgroupSize, SUBGROUP_SIZES(subgroupSizeControl), CORE_1_3(subgroupSizeControl),
     VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3},
    {feature::kFullSubgroups, SUBGROUP_SIZES(computeFullSubgroups), CORE_1_3(computeFullSubgroups),
     VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3},
    {feature::kRuntimeArray, INDEXING(runtimeDescriptorArray), CORE_1_2(runtimeDescriptorArray),
     VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME, VK_API_VERSION_1_2},
    {feature::kVariableCount, INDEXING(descriptorBindingVariableDescriptorCount),
     CORE_1_2(descriptorBindingVariableDescriptorCount), VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME,
     VK_API_VERSION_1_2},
    {feature::kUpdateLater, INDEXING(descriptorBindingStorageBufferUpdateAfterBind),
     CORE_1_2(descriptorBindingStorageBufferUpdateAfterBind),
     VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME, VK_API_VERSION_1_2},
    {feature::kDot8,
     OWN(SHADER_INTEGER_DOT_PRODUCT_FEATURES, VkPhysicalDeviceShaderIntegerDotProductFeatures,
         shaderIntegerDotProduct),
     CORE_1_3(shaderIntegerDotProduct), VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
     VK_API_VERSION_1_3},
    {feature::kOccupancy, NEWER(OccupancyFeatures, computeOccupancyPriority), kNowhere,
     kOccupancyExtension, kNever},
    {feature::kExecutables,
     OWN(PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
         VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR, pipelineExecutableInfo),
     kNowhere, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, kNever},
};

// A chain longer than this is a cycle.
constexpr int kLongestChain = 256;

VkBaseOutStructure* find(VkPhysicalDeviceFeatures2& head, VkStructureType type) {
  auto* next = reinterpret_cast<VkBaseOutStructure*>(&head);
  while (next && next->sType != type) next = next->pNext;
  return next;
}

bool ends(const VkPhysicalDeviceFeatures2& head) {
  const auto* next = reinterpret_cast<const VkBaseInStructure*>(&head);
  int length = 0;
  while (next && length <= kLongestChain) {
    next = next->pNext;
    ++length;
  }
  return next == nullptr;
}

}  // namespace

Features features_in(const VkPhysicalDeviceFeatures2* chain) {
  Features found = 0;
  const auto* next = reinterpret_cast<const VkBaseInStructure*>(chain);
  for (int i = 0; next && i < kLongestChain; ++i, next = next->pNext) {
    for (const Row& row : kRows) {
      for (const Place& place : {row.own, row.core}) {
        if (next->sType != place.type) continue;
        VkBool32 value = VK_FALSE;
        std::memcpy(&value, reinterpret_cast<const std::byte*>(next) + place.offset, sizeof(value));
        if (value == VK_TRUE) found |= row.feature;
      }
    }
  }
  return found;
}

std::vector<const char*> extensions_of(Features features, uint32_t version) {
  std::vector<const char*> list;
  for (const Row& row : kRows) {
    if ((features & row.feature) == 0 || version >= row.core_version) continue;
    if (std::find(list.begin(), list.end(), std::string_view(row.extension)) == list.end()) {
      list.push_back(row.extension);
    }
  }
  return list;
}

Status FeatureStructs::place(Features features, VkPhysicalDeviceFeatures2& head, VkBool32 value) {
  if (!ends(head)) {
    return invalid_argument(
        "[features] the chain of features has more than 256 structs, so it is a cycle; end it with "
        "a "
        "pNext of null");
  }
  for (const Row& row : kRows) {
    if ((features & row.feature) == 0) continue;
    const Place* place = &row.core;
    VkBaseOutStructure* holder = find(head, row.core.type);
    if (!holder) {
      place = &row.own;
      holder = find(head, row.own.type);
    }
    if (!holder) {
      structs_.push_back(std::make_unique<std::byte[]>(row.own.bytes));
      holder = reinterpret_cast<VkBaseOutStructure*>(structs_.back().get());
      holder->sType = row.own.type;
      auto* last = reinterpret_cast<VkBaseOutStructure*>(&head);
      while (last->pNext) last = last->pNext;
      last->pNext = holder;
    }
    std::memcpy(reinterpret_cast<std::byte*>(holder) + place->offset, &value, sizeof(value));
  }
  return {};
}

}  // namespace vkformer
