// What a device can do, as plain data: limits, features, tier. Filled from Vulkan by the vulkan
// room, or by hand in tests; every decision of ops/ and plan/ reads only this.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kernels/catalogue.h"
#include "plan/compiler_traits.h"
#include "plan/gpu_traits.h"
#include "plan/matmul_choice.h"
#include "vkformer/choices.h"

namespace vkformer {

// A size of cooperative matrix that a subgroup multiplies, f16 with sums in f32.
struct MatrixUnit {
  uint32_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixUnit&) const = default;
};

struct DeviceLimits {
  uint64_t max_storage_range = 128ull << 20;  // bytes
  uint32_t max_uniform_range = 16384;         // bytes
  uint32_t max_storage_buffers = 4;           // per stage
  uint32_t max_push_bytes = 128;
  uint32_t max_shared_bytes = 16384;
  uint32_t max_invocations = 128;
  std::array<uint32_t, 3> max_group_size = {128, 128, 64};
  std::array<uint32_t, 3> max_group_count = {65535, 65535, 65535};
  uint64_t storage_alignment = 256;      // bytes
  uint64_t uniform_alignment = 256;      // bytes
  uint64_t max_allocation = 1ull << 30;  // bytes
};

struct DeviceCaps {
  std::string name;
  std::string driver;  // driver name and version
  DeviceClass device_class = DeviceClass::kOther;
  DeviceLimits limits;
  Tier tier = Tier::kBaseline;  // the tier in use: what the device has, clamped by the caller
  uint32_t subgroup_size = 1;
  // Multiprocessors or compute units; 0 where the driver does not say.
  uint32_t compute_units = 0;
  CompilerTraits compiler;
  GpuTraits gpu;                         // counts where device_class is not kSoftware
  std::vector<MatrixUnit> matrix_units;  // in the driver's order; the matrix tier has one or more
  // Lanes of the subgroups that multiply them, whose pipelines may ask for another size. How many
  // of these a workgroup may have.
  uint32_t unit_lanes = 1;
  uint32_t max_unit_subgroups = 32;
  // Subgroups reduce, convert and work on elements of their matrices (VK_NV_cooperative_matrix2);
  // counts in the matrix tier only.
  bool has_matrix2 = false;
  // Integer dot products of packed bytes (shaderIntegerDotProduct).
  bool has_dot8 = false;
  // An indirect dispatch begins where the last one with a base began, unless one without came
  // between; a quirk.
  bool keeps_dispatch_base = false;
  // Longest dispatch that one submit may hold, as f32 operations; splitting inside operators and
  // submit chunking keep below it, far from any watchdog.
  double max_dispatch_flops = 4e9;
  // What the tuner found for this device; empty: the table of the device's class.
  MatmulTuning tuned_matmul;
  // No plan has these kernels: they gave wrong results on this device and driver, or a quirk says
  // so.
  std::vector<KernelId> demoted;

  // Every matrix product sums over K from the first to the last, whatever its kernel.
  bool sums_in_order = false;
  // Of reproducible_caps: the device itself, by which matrix products are chosen, and nothing else.
  std::shared_ptr<const DeviceCaps> of_products = nullptr;

  const DeviceCaps& for_products() const { return of_products ? *of_products : *this; }
  bool subgroup() const { return tier >= Tier::kSubgroup; }
  bool int64() const { return compiler.has_int64 && tier >= Tier::kSubgroup; }
  bool fp16() const { return tier >= Tier::kFp16; }
  bool matrix() const { return tier >= Tier::kMatrix && !matrix_units.empty(); }
  // Kernels whose rows are handed round in quads, a subgroup to a tile.
  bool literal_tiles() const {
    return compiler.wants_literals && subgroup() && subgroup_size == 4 && compiler.has_quads;
  }
  bool tables() const { return compiler.max_table_parts > 0 && tier >= Tier::kSubgroup; }
  bool matrix2() const { return has_matrix2 && matrix(); }
  bool dot8() const { return has_dot8 && tier >= Tier::kSubgroup; }
  bool is_demoted(KernelId kernel) const {
    return std::find(demoted.begin(), demoted.end(), kernel) != demoted.end();
  }
};

// What decides on the order of sums, the same for every device: what all of them have. How much one
// dispatch may hold and bind stays the device's own.
DeviceCaps reproducible_caps(const DeviceCaps& own);

// What a family of devices has: a row of device_profiles.def.
struct DeviceProfile {
  LimitProfile name;
  DeviceLimits limits;
  Tier max_tier;
  bool int64;     // in shaders
  bool timeline;  // semaphores
};
// Null for kNone.
const DeviceProfile* device_profile(LimitProfile name);
std::span<const DeviceProfile> device_profiles();
// The stricter of the two in every field.
DeviceLimits clamp_limits(const DeviceLimits& limits, const DeviceLimits& profile);

}  // namespace vkformer
