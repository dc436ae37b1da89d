// Cooperative matrices (VK_KHR_cooperative_matrix): what a device has of them, and how they are
// enabled. Headers before Vulkan 1.3.255 lack the extension, so its structures are ours here, with
// the values of the registry.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>

#include "plan/device_caps.h"

namespace vkformer {

inline constexpr const char* kMatrixExtension = "VK_KHR_cooperative_matrix";

struct MatrixFeatures {
  static constexpr auto kType = static_cast<VkStructureType>(1000506000);
  VkStructureType sType = kType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// The features of the matrix tier in a chain: to ask for, and to enable. The memory model is what
// the kernels' SPIR-V is written in.
struct MatrixChain {
  VkPhysicalDeviceVulkanMemoryModelFeatures model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  MatrixFeatures matrix;

  // Puts both in front of `next`.
  void* before(void* next) {
    matrix.pNext = next;
    model.pNext = &matrix;
    return &model;
  }
  void set(VkBool32 value) { model.vulkanMemoryModel = matrix.cooperativeMatrix = value; }
  bool whole() const { return model.vulkanMemoryModel && matrix.cooperativeMatrix; }
};

// How many lanes subgroups have: pipelines of matrix units ask for the size that the device states
// and for full subgroups, where a driver might choose others (VK_EXT_subgroup_size_control, core
// from Vulkan 1.3 on).
struct SubgroupSizes {
  VkPhysicalDeviceSubgroupSizeControlFeatures features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlProperties range{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};

  void set(VkBool32 value) { features.subgroupSizeControl = features.computeFullSubgroups = value; }
  // Whether compute pipelines can ask for full subgroups of that size.
  bool can_ask_for(uint32_t size) const;
  // Whether they may have another size if they do not ask. A device without the extension has one.
  bool may_differ_from(uint32_t size) const;
};

// The units of f16 with sums in f32 that subgroups multiply in compute shaders. Empty where the
// function is missing or fails.
std::vector<MatrixUnit> matrix_units_of(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                        VkPhysicalDevice physical);

// "8x8x8, 16x16x16"
std::string units_text(const std::vector<MatrixUnit>& units);

// Names the kernels that this build lacks and says why; empty where it has them all.
std::string missing_matrix_kernels();

}  // namespace vkformer
