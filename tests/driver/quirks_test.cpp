#include "driver/quirks.h"

#include <doctest/doctest.h>

using namespace vkformer;

TEST_SUITE("cpu") {
  TEST_CASE("a quirk clamps only the drivers it names") {
    Quirk quirk;
    quirk.date = "2000-01-01";
    quirk.reason = "A made-up driver miscompiles fp16.";
    quirk.vendor = 0x1234;
    quirk.driver_part = "Made-up";
    quirk.first_version = 10;
    quirk.last_version = 20;
    quirk.max_tier = Tier::kSubgroup;
    quirk.limits = DeviceLimits{.max_invocations = 64};
    quirk.keeps_dispatch_base = true;
    quirk.avoided = {KernelId::fill_words__u32};
    const Quirk list[] = {quirk};
    struct Case {
      DriverIdentity driver;
      bool hit;
    };
    const Case cases[] = {{{0x1234, 15, "Made-up 1.5"}, true}, {{0x1234, 10, "Made-up 1.0"}, true},
                          {{0x1234, 20, "Made-up 2.0"}, true}, {{0x1234, 21, "Made-up 2.1"}, false},
                          {{0x1234, 9, "Made-up 0.9"}, false}, {{0x1235, 15, "Made-up 1.5"}, false},
                          {{0x1234, 15, "Other 1.5"}, false}};
    for (const Case& c : cases) {
      CAPTURE(c.driver.driver);
      DeviceCaps caps;
      caps.tier = Tier::kFp16;
      std::vector<std::string> notes;
      apply_quirks(list, c.driver, caps, notes);
      CHECK(caps.tier == (c.hit ? Tier::kSubgroup : Tier::kFp16));
      CHECK(caps.limits.max_invocations == (c.hit ? 64u : 128u));
      CHECK(caps.keeps_dispatch_base == c.hit);
      CHECK(caps.is_demoted(KernelId::fill_words__u32) == c.hit);
      CHECK(notes.size() == (c.hit ? 1u : 0u));
    }
  }

  TEST_CASE("a quirk of one subgroup size leaves devices of others alone") {
    Quirk quirk;
    quirk.subgroup_size = 16;
    quirk.max_tier = Tier::kSubgroup;
    for (const uint32_t size : {8u, 16u, 32u}) {
      DeviceCaps caps;
      caps.tier = Tier::kFp16;
      caps.subgroup_size = size;
      std::vector<std::string> notes;
      apply_quirks({&quirk, 1}, {}, caps, notes);
      CHECK(caps.tier == (size == 16 ? Tier::kSubgroup : Tier::kFp16));
    }
  }

  TEST_CASE("a quirk never raises a tier, and every known one is dated and explained") {
    Quirk quirk;
    quirk.max_tier = Tier::kFp16;
    DeviceCaps caps;
    std::vector<std::string> notes;
    apply_quirks({&quirk, 1}, {}, caps, notes);
    CHECK(caps.tier == Tier::kBaseline);
    for (const Quirk& known : known_quirks()) {
      CHECK(known.date.size() == 10);
      CHECK(known.reason.size() > 20);
    }
  }
}
