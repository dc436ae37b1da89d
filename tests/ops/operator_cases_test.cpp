// Every operator against its reference, by the cases that conformance/cases/<operator>.cpp declares
// once for tests, conformance and benchmark. What an operator needs beyond them is in
// <operator>_test.cpp.
#include "conformance/cases.h"

#include <algorithm>

#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using conformance::Check;
using conformance::CheckCase;
using conformance::Comparison;
using conformance::Expected;
using conformance::OperatorCases;

const OperatorCases& cases_of(const char* op) {
  const std::vector<OperatorCases>& all = conformance::all_cases();
  const auto found = std::find_if(all.begin(), all.end(), [&](const OperatorCases& cases) {
    return cases.op() == std::string(op);
  });
  REQUIRE(found != all.end());
  return *found;
}

void check_on(const TierDevice& device, const CheckCase& made) {
  TensorMap outputs = run_poisoned(device, made.op, {made.precision, made.live_slots});
  if (made.op.finish != nullptr) outputs = made.op.finish(std::move(outputs)).value();
  for (const auto& [name, expected] : made.expected) {
    REQUIRE(outputs.count(name) == 1);
    const Comparison comparison = conformance::compare(name, outputs.at(name), expected);
    CHECK_MESSAGE(comparison.message.empty(), comparison.message);
  }
}

// An operator that has few checks runs all of them; others run the quick ones, with the workgroups
// that the device itself gets. `vkformer conformance` runs everything.
constexpr size_t kFewChecks = 64;

void check_cases(const char* op) {
  const std::vector<Check>& checks = cases_of(op).checks();
  const bool few = checks.size() <= kFewChecks;
  if (checks.empty()) MESSAGE("skipped: " << op << " has no checks; whole searches check it");
  for (const Check& check : checks) {
    if (!check.quick && !few) continue;
    INFO(check.name);
    const auto made = check.make();
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    for (const TierDevice& device : tier_devices()) {
      if (device.wide && !few) continue;
      INFO(device.tier);
      check_on(device, *made);
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

  TEST_CASE("every operator has checks, or is part of what models.cpp checks") {
    for (const OperatorCases& cases : conformance::all_cases()) {
      const std::string op = cases.op();
      const bool whole = op == "greedy_select" || op == "beam_select" || op == "step_advance" ||
                         op == "segment_means";
      CHECK_MESSAGE(cases.checks().empty() == whole, op);
      CHECK_MESSAGE(!cases.rows().empty(), op);
    }
  }
}

}  // namespace vkformer::testing
