#include "plan/device_caps.h"

#include <doctest/doctest.h>

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("tiers have names, and each includes the ones before it") {
    for (Tier tier : {Tier::kBaseline, Tier::kSubgroup, Tier::kFp16}) {
      const auto again = choice_from_name<Tier>(choice_name(tier));
      REQUIRE(again.ok());
      CHECK(*again == tier);
    }
    for (const char* name : {"", "Baseline", "subgroups", "best "}) {
      const auto unknown = choice_from_name<Tier>(name);
      REQUIRE_FALSE(unknown.ok());
      CHECK(unknown.error().code == ErrorCode::kInvalidArgument);
      CHECK(unknown.error().message.find("'" + std::string(name) + "'") != std::string::npos);
    }
    DeviceCaps caps;
    caps.compiler.has_int64 = true;
    CHECK_FALSE(caps.subgroup());
    CHECK_FALSE(caps.int64());
    caps.tier = Tier::kSubgroup;
    CHECK(caps.subgroup());
    CHECK(caps.int64());
    CHECK_FALSE(caps.fp16());
    caps.tier = Tier::kFp16;
    CHECK(caps.subgroup());
    CHECK(caps.fp16());
  }

  TEST_CASE("device profiles are listed and found by name, and none promises less than Vulkan") {
    for (const DeviceProfile& row : device_profiles()) {
      CAPTURE(choice_name(row.name));
      const DeviceProfile* profile = device_profile(row.name);
      REQUIRE(profile != nullptr);
      const DeviceLimits least;
      CHECK(profile->limits.max_storage_buffers >= least.max_storage_buffers);
      CHECK(profile->limits.max_storage_range >= least.max_storage_range);
      CHECK(profile->limits.max_invocations >= least.max_invocations);
      CHECK(profile->limits.max_shared_bytes >= least.max_shared_bytes);
      CHECK(profile->limits.max_push_bytes >= least.max_push_bytes);
      CHECK(profile->limits.max_uniform_range >= least.max_uniform_range);
      CHECK(profile->limits.storage_alignment <= least.storage_alignment);
    }
    for (const LimitProfile name :
         {LimitProfile::kAndroid2021, LimitProfile::kAndroid2022, LimitProfile::kVulkanMinimum}) {
      const DeviceProfile* profile = device_profile(name);
      REQUIRE(profile != nullptr);
      CHECK(profile->limits.max_storage_buffers == 4);
      CHECK(profile->limits.max_storage_range == 128ull << 20);
      CHECK(profile->limits.max_invocations == 128);
      CHECK(profile->limits.max_shared_bytes == 16384);
      CHECK(profile->max_tier == Tier::kBaseline);
    }
    CHECK(device_profile(LimitProfile::kNone) == nullptr);
    CHECK(device_profiles().size() + 1 == choice_names<LimitProfile>().size());
    const auto unknown = choice_from_name<LimitProfile>("android-1999");
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.error().message.find("android-2022") != std::string::npos);
    CHECK(unknown.error().message.find("android-1999") != std::string::npos);
  }

  TEST_CASE("clamping takes the stricter limit of every field") {
    DeviceLimits a;
    a.max_storage_range = 10;
    a.max_uniform_range = 20;
    a.max_storage_buffers = 30;
    a.max_push_bytes = 40;
    a.max_shared_bytes = 50;
    a.max_invocations = 60;
    a.max_group_size = {1, 20, 3};
    a.max_group_count = {10, 2, 30};
    a.storage_alignment = 16;
    a.uniform_alignment = 64;
    a.max_allocation = 70;
    DeviceLimits b = a;
    b.max_storage_range = 9;
    b.max_uniform_range = 19;
    b.max_storage_buffers = 31;
    b.max_push_bytes = 39;
    b.max_shared_bytes = 51;
    b.max_invocations = 59;
    b.max_group_size = {10, 2, 30};
    b.max_group_count = {1, 20, 3};
    b.storage_alignment = 32;
    b.uniform_alignment = 4;
    b.max_allocation = 69;
    for (const DeviceLimits& both : {clamp_limits(a, b), clamp_limits(b, a)}) {
      CHECK(both.max_storage_range == 9);
      CHECK(both.max_uniform_range == 19);
      CHECK(both.max_storage_buffers == 30);
      CHECK(both.max_push_bytes == 39);
      CHECK(both.max_shared_bytes == 50);
      CHECK(both.max_invocations == 59);
      CHECK(both.max_group_size == std::array<uint32_t, 3>{1, 2, 3});
      CHECK(both.max_group_count == std::array<uint32_t, 3>{1, 2, 3});
      CHECK(both.storage_alignment == 32);
      CHECK(both.uniform_alignment == 64);
      CHECK(both.max_allocation == 69);
    }
  }
}

}  // namespace vkformer::testing
