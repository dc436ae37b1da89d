// How much of a GPU dispatches may take beside graphics (VK_NV_compute_occupancy_priority). Headers
// before Vulkan 1.4.333 lack the extension, so its structs are ours here, with the values of the
// registry.
#pragma once

#include <vulkan/vulkan_core.h>

namespace vkformer {

inline constexpr const char* kOccupancyExtension = "VK_NV_compute_occupancy_priority";

struct OccupancyFeatures {
  static constexpr auto kType = static_cast<VkStructureType>(1000645001);
  VkStructureType sType = kType;
  void* pNext = nullptr;
  VkBool32 computeOccupancyPriority = VK_FALSE;
};

inline constexpr float kLowOccupancy = 0.25f;
inline constexpr float kNormalOccupancy = 0.5f;

struct OccupancyParameters {
  VkStructureType sType = static_cast<VkStructureType>(1000645000);
  const void* pNext = nullptr;
  float occupancyPriority = kNormalOccupancy;  // 0 to 1
  float occupancyThrottling = 0;               // 0 to 1; 0: none
};

using PFN_vkCmdSetComputeOccupancyPriorityNV = void(VKAPI_PTR*)(VkCommandBuffer,
                                                                const OccupancyParameters*);

}  // namespace vkformer
