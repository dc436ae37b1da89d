// Workarounds for particular drivers, as dated data. One place to add a driver oddity.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/device_caps.h"

namespace vkformer {

// What quirks are looked up by.
struct DriverIdentity {
  uint32_t vendor = 0;          // VkPhysicalDeviceProperties::vendorID
  uint32_t driver_version = 0;  // as the driver encodes it
  std::string driver;           // driver name and version, readable
};

// One workaround. A field left at its default matches, or clamps, nothing.
struct Quirk {
  std::string date;         // when it was seen, "2024-05-31"
  std::string reason;       // what goes wrong without it, a full sentence
  uint32_t vendor = 0;      // 0 = any vendor
  std::string driver_part;  // must occur in DriverIdentity::driver
  uint32_t first_version = 0;
  uint32_t last_version = ~0u;
  uint32_t subgroup_size = 0;  // 0 = any
  std::optional<Tier> max_tier;
  std::optional<DeviceLimits> limits;
  bool keeps_dispatch_base = false;  // DeviceCaps has it
  std::vector<KernelId> avoided;     // no plan has them
};

// The workarounds that ship with the library.
std::span<const Quirk> known_quirks();

// Applies every quirk that matches. It clamps the tier and limits, sets what the quirk says of the
// device and its kernels. It notes its date and reason.
void apply_quirks(std::span<const Quirk> quirks, const DriverIdentity& driver, DeviceCaps& caps,
                  std::vector<std::string>& notes);

}  // namespace vkformer
