// Cooperative matrices (VK_KHR_cooperative_matrix, VK_NV_cooperative_matrix2): what a device has of
// them, and how they are enabled. Headers before Vulkan 1.3.255 lack the extension, those before
// 1.3.300 the second, so their structures are ours here, with the values of the registry.
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

// The features of the matrix tier in a chain: to ask for, and to enable. The memory model is what
// the kernels' SPIR-V is written in; once it is enabled, the atomics of every other kernel need its
// device scope, too.
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
  void set(VkBool32 value) {
    model.vulkanMemoryModel = model.vulkanMemoryModelDeviceScope = matrix.cooperativeMatrix = value;
  }
  bool whole() const {
    return model.vulkanMemoryModel && model.vulkanMemoryModelDeviceScope &&
           matrix.cooperativeMatrix;
  }
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

// What kernels of matrix2 use: functions of subgroups' matrices, and local sizes by id in SPIR-V
// 1.6, which Vulkan 1.3 takes.
struct Matrix2Chain {
  VkPhysicalDeviceMaintenance4Features maintenance4{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
  Matrix2Features matrix;

  // Puts both in front of `next`.
  void* before(void* next) {
    matrix.pNext = next;
    maintenance4.pNext = &matrix;
    return &maintenance4;
  }
  void set(VkBool32 value) {
    maintenance4.maintenance4 = matrix.cooperativeMatrixReductions =
        matrix.cooperativeMatrixConversions = matrix.cooperativeMatrixPerElementOperations = value;
  }
  static bool whole(const Matrix2Features& f) {
    return f.cooperativeMatrixReductions && f.cooperativeMatrixConversions &&
           f.cooperativeMatrixPerElementOperations;
  }
  bool whole() const { return maintenance4.maintenance4 && whole(matrix); }
};

// How many lanes subgroups have: pipelines of matrix units ask for full subgroups of one size,
// where a driver might choose others (VK_EXT_subgroup_size_control, core from Vulkan 1.3 on).
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
  // The size to ask for: as many lanes as these units' sums have columns, where the device has such
  // subgroups. Its hardware then multiplies in vectors of that width (Intel: 8, or 16), and wider
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
