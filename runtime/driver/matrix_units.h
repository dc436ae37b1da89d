// Cooperative matrices (VK_KHR_cooperative_matrix, VK_NV_cooperative_matrix2): what a device has of
// them. Headers before Vulkan 1.3.255 lack the first extension, those before 1.3.300 the second. So
// this file defines the structs of their features, with the values of the registry.
#pragma once

#include <vulkan/vulkan_core.h>

#include <span>
#include <string>

#include "kernels/catalogue.h"
#include "plan/device_caps.h"

namespace vkformer {

inline constexpr const char* kMatrixExtension = "VK_KHR_cooperative_matrix";
inline constexpr const char* kMatrix2Extension = "VK_NV_cooperative_matrix2";

struct MatrixFeatures {
  static constexpr auto kType = static_cast<VkStructureType>(1000506000);
  VkStructureType sType = kType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

struct Matrix2Features {
  static constexpr auto kType = static_cast<VkStructureType>(1000593000);
  VkStructureType sType = kType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrixWorkgroupScope = VK_FALSE;
  VkBool32 cooperativeMatrixFlexibleDimensions = VK_FALSE;
  VkBool32 cooperativeMatrixReductions = VK_FALSE;
  VkBool32 cooperativeMatrixConversions = VK_FALSE;
  VkBool32 cooperativeMatrixPerElementOperations = VK_FALSE;
  VkBool32 cooperativeMatrixTensorAddressing = VK_FALSE;
  VkBool32 cooperativeMatrixBlockLoads = VK_FALSE;
};

// How many lanes subgroups have. Pipelines of matrix units ask for full subgroups of one size. A
// driver might otherwise choose others (VK_EXT_subgroup_size_control, core from Vulkan 1.3 on).
struct SubgroupSizes {
  bool offered = false;  // feature::kSubgroupSizes
  VkPhysicalDeviceSubgroupSizeControlProperties range{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};

  // Whether compute pipelines can ask for full subgroups of that size.
  bool can_ask_for(uint32_t size) const;
  // Whether they may have another size if they do not ask. A device without the extension has one.
  bool may_differ_from(uint32_t size) const;
  // The size to ask for: as many lanes as these units' sums have columns, where the device has such
  // subgroups. Its hardware then multiplies in vectors of that width (Intel: 8, or 16). Wider
  // subgroups fill its registers with copies of what is the same for all lanes. Else the stated
  // one.
  uint32_t size_for(std::span<const MatrixUnit> units, uint32_t stated) const;
};

// The units of f16 with sums in f32 that subgroups multiply in compute shaders. Empty where the
// function is missing or fails.
std::vector<MatrixUnit> matrix_units_of(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                        VkPhysicalDevice physical);

// "8x8x8, 16x16x16"
std::string units_text(const std::vector<MatrixUnit>& units);

// Names the kernels of matrix units that this build lacks and says why; empty where it has them
// all. `feature`: those that need it, kFeature_matrix2, or kFeature_matrix and not that.
std::string missing_matrix_kernels(KernelFeature feature);

}  // namespace vkformer
