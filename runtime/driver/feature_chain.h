// The features of a Vulkan device that vkformer uses, as bits in a chain of structs. They are asked
// for, enabled, and read from the chain with which an application made its device.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// A set of them.
using Features = uint32_t;
namespace feature {
inline constexpr Features kInt64 = 1u << 0;           // shaderInt64
inline constexpr Features kFp16 = 1u << 1;            // shaderFloat16
inline constexpr Features kTimeline = 1u << 2;        // timelineSemaphore
inline constexpr Features kMemoryModel = 1u << 3;     // vulkanMemoryModel
inline constexpr Features kDeviceScope = 1u << 4;     // of that model
inline constexpr Features kMatrix = 1u << 5;          // cooperativeMatrix
inline constexpr Features kReductions = 1u << 6;      // of cooperative matrices
inline constexpr Features kConversions = 1u << 7;     // the same
inline constexpr Features kPerElement = 1u << 8;      // the same
inline constexpr Features kMaintenance4 = 1u << 9;    // maintenance4
inline constexpr Features kSubgroupSize = 1u << 10;   // subgroupSizeControl
inline constexpr Features kFullSubgroups = 1u << 11;  // computeFullSubgroups
inline constexpr Features kArrayIndexing = 1u << 12;  // shaderStorageBufferArrayDynamicIndexing
inline constexpr Features kRuntimeArray = 1u << 13;   // runtimeDescriptorArray
inline constexpr Features kVariableCount = 1u << 14;  // descriptorBindingVariableDescriptorCount
inline constexpr Features kUpdateLater = 1u << 15;    // ...StorageBufferUpdateAfterBind
inline constexpr Features kExecutables = 1u << 16;    // pipelineExecutableInfo
inline constexpr Features kDot8 = 1u << 17;           // shaderIntegerDotProduct
inline constexpr Features kOccupancy = 1u << 18;      // computeOccupancyPriority

// What the matrix tier needs. The memory model is what its kernels' SPIR-V is written in. Once it
// is enabled, the atomics of every other kernel need its device scope, too.
inline constexpr Features kUnits = kMatrix | kMemoryModel | kDeviceScope;
// What kernels of matrix2 use: functions of subgroups' matrices, and local sizes by id in
// SPIR-V 1.6, which Vulkan 1.3 takes.
inline constexpr Features kUnits2 = kReductions | kConversions | kPerElement | kMaintenance4;
// Pipelines that ask for full subgroups of one size.
inline constexpr Features kSubgroupSizes = kSubgroupSize | kFullSubgroups;
// Arrays of buffers (buffer_tables.h). Their sets are written before they are bound, but only those
// that might be updated later may have this number of buffers.
inline constexpr Features kTables = kArrayIndexing | kRuntimeArray | kVariableCount | kUpdateLater;
}  // namespace feature

constexpr bool has_all(Features set, Features wanted) {
  return (set & wanted) == wanted;
}

// What a chain enables, or what a device answered of it; none of null.
Features features_in(const VkPhysicalDeviceFeatures2* chain);

// The device extensions without which a device of `version` has none of these features, each once.
std::vector<const char*> extensions_of(Features features, uint32_t version);

// The structs that a chain lacks, so that it has a place for each feature.
class FeatureStructs {
 public:
  // Sets `features` in the chain that begins with `head`. They go into a struct of the chain, of a
  // core version or of an extension. Where there is none, they go into one of this object's, added
  // at its end. An error where the chain is a cycle.
  Status enable(Features features, VkPhysicalDeviceFeatures2& head) {
    return place(features, head, VK_TRUE);
  }
  // The same with VK_FALSE, for a driver to fill.
  Status ask(Features features, VkPhysicalDeviceFeatures2& head) {
    return place(features, head, VK_FALSE);
  }

 private:
  Status place(Features features, VkPhysicalDeviceFeatures2& head, VkBool32 value);

  std::vector<std::unique_ptr<std::byte[]>> structs_;
};

}  // namespace vkformer
