#include "ops/attention_step.h"

#include <cmath>

#include "conformance/attention_step_cases.h"
#include "ops/step_run.h"
#include "reference/attention.h"
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

  TEST_CASE("attention_step takes values within the one key head, up to 576 columns wide") {
    const TensorDesc q{"q", DType::kF32, {6, 1152}};
    const TensorDesc kv{"kv", DType::kF32, {6, 70, 576}};
    const TensorDesc state{"state", DType::kU32, {kStateWords}};
    AttentionStepAttrs a;
    a.heads = 2;
    a.head_width = 576;
    a.value_width = 512;
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "1088");
    a.value_column = 64;
    CHECK(check_attention_step(q, kv, nullptr, state, a).ok());
    a.value_column = 65;
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "[65, 577)");
    a.value_column = ~0u;
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "4294967295");
    a.value_column = 64;
    a.kv_heads = 2;
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "2 heads");
    a.kv_heads = 1;
    a.head_width = 577;
    check_error(check_attention_step(q, kv, nullptr, state, a), "attention", "limit of 576");
  }

  TEST_CASE("wide heads of a step share a workgroup as far as its memory goes") {
    for (const bool rolled : {false, true}) {
      Graph graph;
      graph.set_step(3);
      AttentionStepAttrs a;
      a.heads = 8;
      a.head_width = 576;
      a.value_width = 512;
      a.value_column = 64;
      if (rolled) a.sink_q_offset = 8 * 576;
      const AttentionStepInputs in{
          .q = graph.add_external("q", DType::kF32, {3, 16 * 576}),
          .kv = graph.add_external("kv", DType::kF32, {3, 70, 576}),
          .state = graph.add_external("state", DType::kU32, {kStateWords})};
      const Result<TensorId> y = add_attention_step(graph, in, a);
      REQUIRE(y.ok());
      graph.tensor(y.value()).kind = TensorKind::kExternal;
      DeviceCaps caps;
      caps.device_class = DeviceClass::kDiscrete;
      const Result<Plan> plan = make_plan(graph, caps, Precision::kF32);
      REQUIRE(plan.ok());
      CHECK(plan->dispatches[0].groups[1] == (rolled ? 4u : 2u));
    }
  }

  // DeepSeek-AI, 2024, "DeepSeek-V2", section 2.1.2: W_uk goes into queries, W_uv after the sums.
  TEST_CASE("attention over latents is attention over the keys and values that they expand to") {
    constexpr int64_t heads = 3, keys = 11, rotary = 4, own = 6, rank = 10, values = 7;
    constexpr int64_t width = rotary + rank;
    const Array q = conformance::random_array({heads, rotary + own}, 1);
    const Array lines = conformance::random_array({keys, width}, 2);
    const Array up_keys = conformance::random_array({heads, own, rank}, 3);
    const Array up_values = conformance::random_array({heads, values, rank}, 4);
    Array expanded_k = reference::filled({1, heads, keys, rotary + own}, 0.0);
    Array expanded_v = reference::filled({1, heads, keys, values}, 0.0);
    Array absorbed_q = reference::filled({1, heads, 1, width}, 0.0);
    Array shared_k = lines, shared_v = reference::filled({1, 1, keys, rank}, 0.0);
    shared_k.shape = {1, 1, keys, width};
    const auto expand = [&](const Array& up, int64_t row, int64_t key) {
      double sum = 0;
      for (int64_t r = 0; r < rank; ++r)
        sum += up[row * rank + r] * lines[key * width + rotary + r];
      return sum;
    };
    for (int64_t s = 0; s < keys; ++s) {
      for (int64_t r = 0; r < rank; ++r) shared_v[s * rank + r] = lines[s * width + rotary + r];
      for (int64_t h = 0; h < heads; ++h) {
        double* key = &expanded_k[(h * keys + s) * (rotary + own)];
        for (int64_t e = 0; e < rotary; ++e) key[e] = lines[s * width + e];
        for (int64_t e = 0; e < own; ++e) key[rotary + e] = expand(up_keys, h * own + e, s);
        for (int64_t e = 0; e < values; ++e) {
          expanded_v[(h * keys + s) * values + e] = expand(up_values, h * values + e, s);
        }
      }
    }
    for (int64_t h = 0; h < heads; ++h) {
      const double* query = &q.data[static_cast<size_t>(h * (rotary + own))];
      for (int64_t e = 0; e < rotary; ++e) absorbed_q[h * width + e] = query[e];
      for (int64_t e = 0; e < own; ++e) {
        for (int64_t r = 0; r < rank; ++r) {
          absorbed_q[h * width + rotary + r] +=
              query[rotary + e] * up_keys[(h * own + e) * rank + r];
        }
      }
    }
    Array plain_q = q;
    plain_q.shape = {1, heads, 1, rotary + own};
    reference::AttentionOptions options;
    options.scale = 1.0 / std::sqrt(static_cast<double>(rotary + own));
    const auto expanded = reference::attention(plain_q, expanded_k, expanded_v, options);
    const auto latents = reference::attention(absorbed_q, shared_k, shared_v, options);
    REQUIRE(expanded.ok());
    REQUIRE(latents.ok());
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t e = 0; e < values; ++e) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r) {
          sum += up_values[(h * values + e) * rank + r] * latents.value()[h * rank + r];
        }
        CHECK(std::abs(sum - expanded.value()[h * values + e]) < 1e-12);
      }
    }
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
