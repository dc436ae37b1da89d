#include "driver/matrix_units.h"

#include <algorithm>
#include <bit>

#ifndef VKFORMER_MATRIX_MISSING
#define VKFORMER_MATRIX_MISSING "its build left them out"
#endif

namespace vkformer {
namespace {

// VkCooperativeMatrixPropertiesKHR, with numbers in place of its enumerations.
struct MatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a_type = 0, b_type = 0, c_type = 0, result_type = 0;
  VkBool32 saturating = VK_FALSE;
  uint32_t scope = 0;
};
constexpr uint32_t kFloat16 = 0, kFloat32 = 1;  // VkComponentTypeKHR
constexpr uint32_t kSubgroupScope = 3;          // VkScopeKHR

using GetMatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, MatrixProperties*);

}  // namespace

bool SubgroupSizes::can_ask_for(uint32_t size) const {
  return offered && (range.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
         range.minSubgroupSize <= size && size <= range.maxSubgroupSize;
}

bool SubgroupSizes::may_differ_from(uint32_t size) const {
  return range.maxSubgroupSize != 0 &&
         (range.minSubgroupSize != size || range.maxSubgroupSize != size);
}

uint32_t SubgroupSizes::size_for(std::span<const MatrixUnit> units, uint32_t stated) const {
  uint32_t columns = 0;
  for (const MatrixUnit& unit : units) columns = std::max(columns, unit.n);
  return std::has_single_bit(columns) && can_ask_for(columns) ? columns : stated;
}

std::vector<MatrixUnit> matrix_units_of(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                        VkPhysicalDevice physical) {
  const auto ask = reinterpret_cast<GetMatrixProperties>(
      get(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t count = 0;
  if (!ask || ask(physical, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<MatrixProperties> found(count);
  if (ask(physical, &count, found.data()) < 0) return {};
  found.resize(std::min<size_t>(found.size(), count));
  std::vector<MatrixUnit> units;
  for (const MatrixProperties& p : found) {
    const bool fits = p.a_type == kFloat16 && p.b_type == kFloat16 && p.c_type == kFloat32 &&
                      p.result_type == kFloat32 && p.scope == kSubgroupScope;
    const MatrixUnit unit{p.m, p.n, p.k};
    if (fits && std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  }
  return units;
}

std::string units_text(const std::vector<MatrixUnit>& units) {
  std::string text;
  for (const MatrixUnit& u : units) {
    text += (text.empty() ? "" : ", ") + std::to_string(u.m) + "x" + std::to_string(u.n) + "x" +
            std::to_string(u.k);
  }
  return text;
}

std::string missing_matrix_kernels(KernelFeature feature) {
  std::string names;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const KernelInfo& info = kernel_info(static_cast<KernelId>(i));
    const uint32_t of_units = info.features & (kFeature_matrix | kFeature_matrix2);
    const bool asked = feature == kFeature_matrix2 ? (of_units & kFeature_matrix2) != 0
                                                   : of_units == kFeature_matrix;
    if (!asked || info.words != 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names.empty() ? std::string()
                       : "vkformer was built without " + names + ": " VKFORMER_MATRIX_MISSING;
}

}  // namespace vkformer
