#include "ops/attention_step.h"

#include "conformance/attention_step_cases.h"
#include "ops/step_run.h"
#include "support/check_case.h"

namespace vkformer::testing {
namespace {

using conformance::AttentionStep;
using conformance::AttentionStepArrays;
using conformance::CheckCase;

AttentionStepArrays arrays_of(const AttentionStep& c) {
  auto made = conformance::make_step_arrays(c);
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  return std::move(made).value();
}

CheckCase case_of(const AttentionStep& c, const AttentionStepArrays& a) {
  auto made = conformance::attention_step_case(c, a);
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  return std::move(made).value();
}

// Into the first element of a line of a row's f32 cache.
void put_nan(AttentionStepArrays& a, const AttentionStep& c, int64_t row, int64_t line) {
  a.kv[(row * c.lines + line) * c.line()] = kNan;
  a.stored = reference::to_tensor(a.kv);
}

// Runs and compares the live slots; the others must be untouched. Returns y of the last device.
Tensor check_step(const AttentionStep& c, const AttentionStepArrays& a) {
  const CheckCase made = case_of(c, a);
  Tensor last;
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier);
    last = check_case_on(device, made).at("y");
  }
  return last;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a step too long for one dispatch gives the same bits, and skips the same slots") {
    for (bool parts : {false, true}) {
      AttentionStep c;
      if (parts) {
        c.lines = 2500;
        c.heads = c.kv_heads = 1;
        c.position = 2490;
      }
      const PreparedOperator step = case_of(c, arrays_of(c)).op;
      for (const TierDevice& device : tier_devices()) {
        CAPTURE(device.tier);
        const auto live = static_cast<uint32_t>(c.slot_rows.size());
        const Tensor whole = run_step(device, step.graph, step.inputs, live).at("y");
        CHECK(run_step(device, step.graph, step.inputs, live, 1e12).at("y").bytes == whole.bytes);
      }
    }
  }

  TEST_CASE("a step of cross-attention whose items have no key gives zeros") {
    AttentionStep c;
    c.source = AttentionStepAttrs::Source::kCross;
    c.beams = 2;
    c.masked = true;
    AttentionStepArrays a = arrays_of(c);
    std::fill(a.aux.begin() + 3, a.aux.begin() + 6, 0u);
    check_step(c, a);
  }

  TEST_CASE("a NaN in the cache reaches the rows that see it only") {
    const AttentionStep c;
    AttentionStepArrays a = arrays_of(c);
    put_nan(a, c, 5, 9);
    put_nan(a, c, 4, 69);
    check_step(c, a);
  }

  TEST_CASE("a step split over its keys sees the same, whatever the capacity, to the bit") {
    for (int64_t kv_heads : {1, 3}) {
      AttentionStep c;
      c.lines = 700;
      c.heads = 3;
      c.kv_heads = kv_heads;
      c.position = 199;
      const AttentionStepArrays a = arrays_of(c);
      if (tier_devices().empty()) return;
      const Tensor large = check_step(c, a);
      AttentionStep fewer = c;
      fewer.lines = 200;
      AttentionStepArrays cut = a;
      cut.kv = reference::filled({c.rows, fewer.lines, c.line()}, 0.0);
      for (int64_t row = 0; row < c.rows; ++row) {
        std::copy_n(a.kv.data.begin() + row * c.lines * c.line(), fewer.lines * c.line(),
                    cut.kv.data.begin() + row * fewer.lines * c.line());
      }
      cut.stored = reference::to_tensor(cut.kv);
      const Tensor small = check_step(fewer, cut);
      const size_t live = c.slot_rows.size() * 4 * static_cast<size_t>(c.heads * c.value_width);
      CHECK(std::equal(large.bytes.begin(), large.bytes.begin() + static_cast<long>(live),
                       small.bytes.begin()));
    }
  }

  TEST_CASE("a NaN in one part of the keys reaches the merged result") {
    AttentionStep c;
    c.lines = 600;
    c.position = 599;
    c.heads = 2;
    c.kv_heads = 1;
    AttentionStepArrays a = arrays_of(c);
    put_nan(a, c, 5, 300);
    check_step(c, a);
  }

  TEST_CASE("a row's result does not depend on how many slots are live") {
    AttentionStep many;
    many.slot_rows = {4, 0, 5, 1, 2, 3};
    AttentionStep one = many;
    one.slot_rows = {4};
    const AttentionStepArrays a = arrays_of(many);
    if (tier_devices().empty()) return;
    const Tensor whole = check_step(many, a);
    const Tensor alone = check_step(one, a);
    const size_t bytes = 4 * 4 * 16;
    CHECK(std::equal(whole.bytes.begin(), whole.bytes.begin() + bytes, alone.bytes.begin()));
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention_step says what is wrong with its inputs") {
    const TensorDesc q{"q", DType::kF32, {6, 32}};
    const TensorDesc kv{"kv", DType::kF32, {6, 70, 32}};
    const TensorDesc ancestry{"ancestry", DType::kU32, {6, 70}};
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    AttentionStepAttrs a;
    a.heads = a.kv_heads = 2;
    a.head_width = a.value_width = 8;
    CHECK(check_attention_step(q, kv, nullptr, state, a).ok());
    a.beams = 3;
    CHECK(check_attention_step(q, kv, &ancestry, state, a).ok());
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "ancestry");
    a.q_offset = 17;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "at least 33");
    a.q_offset = 0;
    a.value_width = 9;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "34");
    a.value_width = 8;
    a.beams = 0;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "beams");
    a.beams = 1;
    check_error(check_attention_step(q, kv, nullptr, ancestry, a), "attention", "state");
    a.source = AttentionStepAttrs::Source::kCross;
    check_error(check_attention_step(q, kv, &ancestry, state, a), "attention", "(6, 3)");
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {6, 32});
    check_error(add_attention_step(graph, {x, x, kNoTensor, x}, a), "attention", "decoding step");
  }

  TEST_CASE("a long attention_step is split over its keys and merged, on software devices too") {
    AttentionStep c;
    c.rows = 1;
    c.slot_rows = {0};
    c.lines = 40000;
    const PreparedOperator step = case_of(c, arrays_of(c)).op;
    for (DeviceClass device_class : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
      DeviceCaps caps;
      caps.device_class = device_class;
      const Result<Plan> plan = make_plan(step.graph, caps, Precision::kF32);
      REQUIRE(plan.ok());
      REQUIRE(plan->dispatches.size() == 2);
      CHECK(plan->dispatches[0].groups == std::array<uint32_t, 3>{1, 2, 40});
      CHECK(plan->dispatches[1].groups == std::array<uint32_t, 3>{1, 4, 1});
      CHECK(plan->dispatches[1].live_axis == 0);
    }
  }

  TEST_CASE("attention_step's plan takes the live slots on x") {
    const AttentionStep c;
    const PreparedOperator step = case_of(c, arrays_of(c)).op;
    const Plan plan =
        plan_with_kernel(step.graph, Tier::kBaseline, "attention_decode__f32_f32_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{6, 2, 1});  // pairs of heads
    CHECK(plan.dispatches[0].live_axis == 0);
    CHECK(plan.dispatches[0].slots_per_group == 1);
    plan_with_kernel(step.graph, Tier::kSubgroup, "attention_decode__f32_f32_f32_subgroup");
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
