// Every operator against its reference, by the cases that conformance/cases/<operator>.cpp declares
// once for tests, conformance and benchmark. What an operator needs beyond them is in
// <operator>_test.cpp.
#include "conformance/cases.h"

#include <algorithm>

#include "plan/gpu_traits.h"
#include "support/check_case.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

using conformance::Check;
using conformance::OperatorCases;

const OperatorCases& cases_of(const char* op) {
  const std::vector<OperatorCases>& all = conformance::all_cases();
  const auto found = std::find_if(all.begin(), all.end(), [&](const OperatorCases& cases) {
    return cases.op() == std::string(op);
  });
  REQUIRE(found != all.end());
  return *found;
}

// An operator that has few checks runs all of them. Others run those that are for tests, and the
// quick ones with the workgroups that the device itself gets. `vkformer conformance` runs
// everything.
constexpr size_t kFewChecks = 64;

void check_cases(const char* op) {
  const std::vector<Check>& checks = cases_of(op).checks();
  const bool few = checks.size() <= kFewChecks;
  for (const Check& check : checks) {
    const bool tested = few || check.tested;
    if (!check.quick && !tested) continue;
    INFO(check.name);
    const auto made = check.make();
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    for (const TierDevice& device : tier_devices()) {
      if (device.wide && !tested) continue;
      INFO(device.tier);
      check_case_on(device, *made);
    }
  }
}

}  // namespace

TEST_SUITE("gpu"){
#define VKF_OP(name)                                                           \
  TEST_CASE(#name " agrees with its reference in every case, on every tier") { \
    check_cases(#name);                                                        \
  }
#include "ops/op_list.def"
}

TEST_SUITE("gpu") {
  TEST_CASE("products agree with their references in the blocks of GPUs with few registers") {
    constexpr uint32_t kBroadcom = 0x14e4;
    for (const TierDevice& device : make_tier_devices()) {
      if (device.wide) continue;
      INFO(device.tier);
      DeviceCaps& caps = device.device->impl().context.caps;
      caps.gpu = gpu_traits(kBroadcom, "");
      caps.device_class = DeviceClass::kIntegrated;  // software devices have other products
      REQUIRE(caps.gpu.matmul_block == 16);
      for (const char* const op : {"matmul", "experts"}) {
        for (const Check& check : cases_of(op).checks()) {
          if (!check.tested) continue;
          INFO(check.name);
          const auto made = check.make();
          REQUIRE_MESSAGE(made.ok(), made.error().message);
          check_case_on(device, *made);
        }
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("every operator's cases plan on every tier, without aliasing") {
    for (const OperatorCases& cases : conformance::all_cases()) {
      for (const Check& check : cases.checks()) {
        if (!check.quick) continue;
        INFO(check.name);
        const auto made = check.make();
        REQUIRE_MESSAGE(made.ok(), made.error().message);
        for (const Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
          const auto plan = make_plan(made->op.graph, caps_of_tier(tier), made->precision);
          REQUIRE_MESSAGE(plan.ok(), plan.error().message);
          CHECK(!plan->dispatches.empty());
          check_no_aliasing(*plan);
        }
      }
    }
  }

  TEST_CASE("every operator has checks and is timed") {
    for (const OperatorCases& cases : conformance::all_cases()) {
      CHECK_MESSAGE(!cases.checks().empty(), cases.op());
      CHECK_MESSAGE(!cases.rows().empty(), cases.op());
    }
  }
}

}  // namespace vkformer::testing
