#include "vulkan/quirks.h"

namespace vkformer {

std::span<const Quirk> known_quirks() {
  // Seen in generation by slices: the first step's indirect dispatches left out workgroups when the
  // last piece of the prompt before them, in the same command buffer, had a base.
  static const Quirk kKnown[] = {
      {.date = "2026-11-22",
       .reason = "vkCmdDispatchIndirect begins at the base of the vkCmdDispatchBase before it, so "
                 "that workgroups are left out; an empty vkCmdDispatch between them resets it.",
       .driver_part = "llvmpipe",
       .keeps_dispatch_base = true},
  };
  return kKnown;
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
    caps.keeps_dispatch_base |= quirk.keeps_dispatch_base;
    notes.push_back("workaround of " + quirk.date + ": " + quirk.reason);
  }
}

}  // namespace vkformer
