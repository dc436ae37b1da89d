#include "plan/device_caps.h"

#include <algorithm>

namespace vkformer {
namespace {

struct Profile {
  const char* name;
  DeviceLimits limits;
};

// Android Baseline Profile 2022 and the Vulkan 1.1 required limits, where a limit concerns us.
// DeviceLimits' own defaults are those of the Android profile.
const Profile* profiles(size_t* count) {
  static const Profile kProfiles[] = {
      {"android-2022", {}},
      {"vulkan-minimum", {.max_storage_range = 128ull << 20, .max_invocations = 128}},
  };
  *count = std::size(kProfiles);
  return kProfiles;
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::kBaseline:
      return "baseline";
    case Tier::kSubgroup:
      return "subgroup";
    case Tier::kFp16:
      return "fp16";
  }
  return "";
}

Result<Tier> tier_from_name(std::string_view name) {
  for (Tier tier : {Tier::kBaseline, Tier::kSubgroup, Tier::kFp16}) {
    if (name == tier_name(tier)) return tier;
  }
  return invalid_argument("[tier] '" + std::string(name) +
                          "' is no tier; use baseline, subgroup, fp16 or best");
}

Result<DeviceLimits> limit_profile(std::string_view name) {
  size_t count = 0;
  const Profile* list = profiles(&count);
  for (size_t i = 0; i < count; ++i) {
    if (name == list[i].name) return list[i].limits;
  }
  std::string known;
  for (const std::string& n : limit_profile_names()) known += (known.empty() ? "" : ", ") + n;
  return invalid_argument("[limits] '" + std::string(name) + "' is no limit profile; known are " +
                          known);
}

std::vector<std::string> limit_profile_names() {
  size_t count = 0;
  const Profile* list = profiles(&count);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.emplace_back(list[i].name);
  return names;
}

DeviceLimits clamp_limits(const DeviceLimits& a, const DeviceLimits& b) {
  DeviceLimits r;
  r.max_storage_range = std::min(a.max_storage_range, b.max_storage_range);
  r.max_uniform_range = std::min(a.max_uniform_range, b.max_uniform_range);
  r.max_storage_buffers = std::min(a.max_storage_buffers, b.max_storage_buffers);
  r.max_push_bytes = std::min(a.max_push_bytes, b.max_push_bytes);
  r.max_shared_bytes = std::min(a.max_shared_bytes, b.max_shared_bytes);
  r.max_invocations = std::min(a.max_invocations, b.max_invocations);
  for (size_t i = 0; i < 3; ++i) {
    r.max_group_size[i] = std::min(a.max_group_size[i], b.max_group_size[i]);
    r.max_group_count[i] = std::min(a.max_group_count[i], b.max_group_count[i]);
  }
  r.storage_alignment = std::max(a.storage_alignment, b.storage_alignment);
  r.uniform_alignment = std::max(a.uniform_alignment, b.uniform_alignment);
  r.max_allocation = std::min(a.max_allocation, b.max_allocation);
  return r;
}

}  // namespace vkformer
