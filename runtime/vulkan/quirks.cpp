#include "vulkan/quirks.h"

namespace vkformer {

// No driver tested so far needs one.
std::span<const Quirk> known_quirks() {
  return {};
}

void apply_quirks(std::span<const Quirk> quirks, const DriverIdentity& driver, DeviceCaps& caps,
                  std::vector<std::string>& notes) {
  for (const Quirk& quirk : quirks) {
    if (quirk.vendor != 0 && quirk.vendor != driver.vendor) continue;
    if (driver.driver.find(quirk.driver_part) == std::string::npos) continue;
    if (driver.driver_version < quirk.first_version) continue;
    if (driver.driver_version > quirk.last_version) continue;
    if (quirk.max_tier && caps.tier > *quirk.max_tier) caps.tier = *quirk.max_tier;
    if (quirk.limits) caps.limits = clamp_limits(caps.limits, *quirk.limits);
    notes.push_back("workaround of " + quirk.date + ": " + quirk.reason);
  }
}

}  // namespace vkformer
