// Everything asked of a VkPhysicalDevice, once, as plain data: its capabilities and what to enable.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/api_table.h"
#include "driver/quirks.h"
#include "plan/device_caps.h"
#include "reproducible/pin_arithmetic.h"
#include "vkformer/device.h"

namespace vkformer {

// Of buffers in memory of the host, which kernels read. `embedding` reads the weights of its norm
// from a uniform buffer.
inline constexpr VkBufferUsageFlags kImportedUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;

struct Snapshot {
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  // Asks for heaps' budgets; null where VK_EXT_memory_budget is not offered.
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory_budget = nullptr;
  // Of the host's memory that can become device memory (VK_EXT_external_memory_host): what
  // addresses and sizes are multiples of, bytes; 0 where none can.
  uint64_t import_alignment = 0;
  std::vector<VkQueueFamilyProperties> families;
  uint32_t version = 0;  // usable: the device's, at most the instance's
  // What the device offers; clamp_snapshot and adoption lower it.
  DeviceCaps caps;
  DeviceInfo info;
  DriverIdentity driver;
  std::vector<std::string> extensions;  // every one offered
  bool fp16 = false;
  bool timeline = false;
  bool subgroup = false;
  bool occupancy = false;         // dispatches can leave most of the GPU to graphics
  bool matrix = false;            // the matrix tier's features; units are in caps
  ArithmeticModes arithmetic;     // that f32 offers
  bool sizes_subgroups = false;   // pipelines can ask for full subgroups of DeviceCaps::unit_lanes
  bool varies_subgroups = false;  // they may have another size where they do not ask
  std::string unusable;           // why no Device can be made of it; empty if one can

  bool offers(const char* extension) const;
  // The extension with which a queue of low priority can be made, or null.
  const char* priority_extension() const;
  // First queue family with compute, or -1.
  int compute_family() const;
  // The tier that follows from subgroup, fp16 and matrix.
  Tier best_tier() const;
  // Omits matrix units where subgroups may not have the size for which a device lists them.
  void leave_out_unsized_units();
};

// `instance_version` as the instance was made with; `index` among the machine's devices.
Result<Snapshot> take_snapshot(const InstanceApi& api, VkPhysicalDevice physical,
                               uint32_t instance_version, int index);

// Whether these options ask for what `occupancy` offers.
bool lowers_occupancy(const Snapshot& snapshot, const DeviceOptions& options);

// Applies quirks, then the caller's tier and limit profile, to caps, and mirrors it in info.
Status clamp_snapshot(Snapshot& snapshot, const DeviceOptions& options,
                      std::span<const Quirk> extra_quirks);

}  // namespace vkformer
