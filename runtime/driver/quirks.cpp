#include "driver/quirks.h"

#include <vulkan/vulkan_core.h>

namespace vkformer {

std::span<const Quirk> known_quirks() {
  // The first was seen in generation by slices. The first step's indirect dispatches omitted
  // workgroups when the piece before them had a base. That was the last piece of the prompt, in the
  // same command buffer. The second with LP_NATIVE_VECTOR_WIDTH=512 in Mesa 26.2.6, even in a
  // kernel of nothing else. The third compiled by Mesa 26.2.6 for GPUs that were not there. On Xe2
  // (Lunar Lake) it is 0, 14 and 183 registers at 32, 64 and 128 columns.
  static const Quirk kKnown[] = {
      {.date = "2026-11-22",
       .reason = "vkCmdDispatchIndirect begins at the base of the vkCmdDispatchBase before it, so "
                 "that workgroups are omitted; an empty vkCmdDispatch between them resets it.",
       .driver_part = "llvmpipe",
       .keeps_dispatch_base = true},
      {.date = "2026-11-22",
       .reason = "Cooperative matrices crash in subgroups of 16.",
       .driver_part = "llvmpipe",
       .first_version = VK_MAKE_API_VERSION(0, 26, 0, 0),
       .subgroup_size = 16,
       .max_tier = Tier::kFp16},
      {.date = "2026-11-25",
       .reason =
           "Mesa's compiler keeps what attention by matrix units adds up in memory: on DG2 77 "
           "registers at heads of 32 columns, 558 at 128; attention without units is used.",
       .driver_part = "Intel open-source Mesa driver",
       .avoided = {KernelId::attention_units__f32_f32_f32_matrix}},
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
    if (quirk.subgroup_size != 0 && quirk.subgroup_size != caps.subgroup_size) continue;
    if (quirk.max_tier && caps.tier > *quirk.max_tier) caps.tier = *quirk.max_tier;
    if (quirk.limits) caps.limits = clamp_limits(caps.limits, *quirk.limits);
    caps.keeps_dispatch_base |= quirk.keeps_dispatch_base;
    caps.demoted.insert(caps.demoted.end(), quirk.avoided.begin(), quirk.avoided.end());
    notes.push_back("workaround of " + quirk.date + ": " + quirk.reason);
  }
}

}  // namespace vkformer
