// What slices learn of a device, and the file that it is carried over in.
#include <doctest/doctest.h>

#include "device_files/costs_file.h"
#include "plan/slicing.h"

namespace vkformer {
namespace {

Plan plan_of(uint32_t groups, double flops) {
  Plan plan;
  Dispatch d;
  d.kernel = KernelId::fill_words__u32;
  d.groups = {groups, 1, 1};
  d.flops = flops;
  plan.dispatches = {d};
  return plan;
}

PlanPiece whole(const Plan& plan) {
  return {0, {{0, 0, 0}, plan.dispatches[0].groups, plan.dispatches[0].flops}};
}

KernelCosts::Table some_table() {
  KernelCosts::Table table;
  table.fixed_microseconds = 2.5;
  table.kernels["fill_words__u32"] = {1e6, 12.25};
  table.dispatches[0x0123456789abcdef] = 100;
  table.dispatches[7] = 0.125;
  return table;
}

const PipelineCacheKey kKey{1, 2, 3, {}, 4};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a pass begins with what an earlier one of its size has taken") {
    const Plan plan = plan_of(10, 1e6);
    KernelCosts known;
    {
      SliceCosts costs(plan, 1000, known);
      CHECK(costs.measured_microseconds() == 0);
      costs.observe(whole(plan), 50);
    }
    CHECK(known.changed());
    const SliceCosts again(plan, 1000, known);
    CHECK(again.total_microseconds() == doctest::Approx(50).epsilon(0.05));
    CHECK(again.measured_microseconds() == again.total_microseconds());
  }

  TEST_CASE("a size that is not known goes by its kernel's others") {
    const Plan plan = plan_of(10, 1e6);
    KernelCosts known;
    SliceCosts costs(plan, 1000, known);
    for (int i = 0; i < 20; ++i) costs.observe(whole(plan), 50);
    const SliceCosts larger(plan_of(20, 2e6), 1000, known);
    CHECK(larger.measured_microseconds() == 0);
    CHECK(larger.share_microseconds(0, 1.0) == doctest::Approx(2 * 40).epsilon(0.3));
  }

  TEST_CASE("kernel, constants, groups and work tell dispatches apart") {
    const Dispatch d = plan_of(10, 1e6).dispatches[0];
    Dispatch other = d;
    CHECK(cost_key(other) == cost_key(d));
    other.spec = {1};
    CHECK(cost_key(other) != cost_key(d));
    other = d;
    other.groups[1] = 2;
    CHECK(cost_key(other) != cost_key(d));
    other = d;
    other.bytes = 5;
    CHECK(cost_key(other) != cost_key(d));
    other = d;
    other.reproducible = true;
    CHECK(cost_key(other) != cost_key(d));
  }

  TEST_CASE("sizes beyond the most are not remembered, those before are") {
    KernelCosts known;
    for (uint64_t key = 0; key < KernelCosts::kMostDispatches + 10; ++key) known.learn(key, 1);
    known.learn(0, 2);
    CHECK(known.table().dispatches.size() == KernelCosts::kMostDispatches);
    CHECK(known.of_dispatch(0) == 2);
    CHECK(known.of_dispatch(KernelCosts::kMostDispatches) == 0);
  }

  TEST_CASE("the file gives what was written, and nothing where anything is off") {
    const std::string text = costs_text(kKey, some_table());
    const auto read = parse_costs(text, kKey);
    REQUIRE(read.has_value());
    CHECK(read->fixed_microseconds == 2.5);
    CHECK(read->kernels.at("fill_words__u32").microseconds == 12.25);
    CHECK(read->dispatches == some_table().dispatches);
    PipelineCacheKey other = kKey;
    other.driver_version = 9;
    CHECK_FALSE(parse_costs(text, other).has_value());
    CHECK_FALSE(parse_costs("", kKey).has_value());
    for (size_t cut = 0; cut < text.size(); ++cut) {
      CHECK_FALSE(parse_costs(text.substr(0, cut), kKey).has_value());
    }
    for (size_t at = 0; at < text.size(); ++at) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      CHECK_FALSE(parse_costs(damaged, kKey).has_value());
    }
  }

  TEST_CASE("lines that nothing writes make no costs, with a right checksum, too") {
    const std::string head = costs_text(kKey, {});
    const std::string before = head.substr(0, head.rfind("sum "));
    for (const char* line :
         {"fixed 0", "fixed -1", "fixed nan", "fixed inf", "fixed 1e300", "fixed", "fixed 1 2",
          "kernel a 1", "kernel a 0 1", "kernel a 1e30 1", "kernel a 1 1 1", "dispatch 1 1",
          "dispatch 0123456789abcdeg 1", "dispatch 0123456789abcdef", "other 1", " ", ""}) {
      CAPTURE(line);
      const std::string text = before + line + "\n";
      CHECK_FALSE(parse_costs(with_checksum(text), kKey).has_value());
    }
  }
}

}  // namespace vkformer
