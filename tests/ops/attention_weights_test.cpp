#include "ops/attention_weights.h"

#include "ops/attention_cases.h"

namespace vkformer::testing {
namespace {

using Kind = AttentionWeightsAttrs::Result;

PreparedOperator prepare_attention_weights(const AttentionCase& c, const AttentionProblem& p,
                                           Kind kind, uint32_t first_head = 0,
                                           uint32_t head_count = 0) {
  const ScoreTerms terms = make_terms(c, p);
  PreparedOperator op;
  AttentionInputs inputs;
  inputs.q = op.bind("q", p.q);
  inputs.kv = op.bind("k", p.k);
  if (c.terms != AttentionCase::kNone) inputs.terms = op.bind("terms", terms.words);
  const AttentionWeightsAttrs attrs{make_attrs(c, terms.params), first_head, head_count, kind};
  Result<TensorId> y = add_attention_weights(op.graph, inputs, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

// Heads [first, first + count) of (B, H, T, S).
Array some_heads(const Array& all, int64_t first, int64_t count) {
  Array some = reference::filled({all.dim(0), count, all.dim(2), all.dim(3)}, 0.0);
  const int64_t plane = all.dim(2) * all.dim(3);
  for (int64_t at = 0; at < some.size(); ++at) {
    const int64_t head = at / plane;
    some[at] = all[(head / count * all.dim(1) + first + head % count) * plane + at % plane];
  }
  return some;
}

void check_attention_weights_problem(const AttentionCase& c, const AttentionProblem& p) {
  const Array expected = reference_outputs(c, p).weights;
  const PreparedOperator op = prepare_attention_weights(c, p, Kind::kProbabilities);
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    check_close(run_poisoned(device, op).at("y"), expected,
                tolerance_for(DType::kF32, c.keys + c.head_width));
  }
}

void check_attention_weights_case(const AttentionCase& c) {
  check_attention_weights_problem(c, make_problem(c));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention weights with extreme temperatures and large logits") {
    for (float temperature : {1e-6f, 1e6f}) {
      check_attention_weights_case({.queries = 9, .keys = 66, .temperature = temperature});
    }
    check_attention_weights_case({.queries = 9, .keys = 66, .spread = 30.0f});
    check_attention_weights_case({.queries = 9, .keys = 66, .spread = 1e6f, .temperature = 1e-30f});
  }

  TEST_CASE("attention weights of some heads only") {
    const AttentionCase c{.batch = 2,
                          .heads = 6,
                          .kv_heads = 3,
                          .queries = 5,
                          .keys = 13,
                          .terms = AttentionCase::kAlibi};
    const AttentionProblem p = make_problem(c);
    const Array all = reference_outputs(c, p).weights;
    for (const TierDevice& device : tier_devices()) {
      const Tensor y =
          run_poisoned(device, prepare_attention_weights(c, p, Kind::kProbabilities, 3, 2)).at("y");
      check_close(y, some_heads(all, 3, 2), tolerance_for(DType::kF32, 64));
    }
  }

  TEST_CASE("scores before the softmax, -inf where masked") {
    AttentionCase c{.heads = 2,
                    .kv_heads = 2,
                    .queries = 5,
                    .keys = 13,
                    .temperature = 2.0f,
                    .terms = AttentionCase::kBias};
    c.masks.causal = true;
    c.masks.causal_offset = 4;
    const AttentionProblem p = make_problem(c);
    Array expected = reference_outputs(c, p).scores;
    for (int64_t at = 0; at < expected.size(); ++at) {
      if (at % 13 > at / 13 % 5 + 4) expected[at] = -kInfinity;
    }
    for (const TierDevice& device : tier_devices()) {
      check_close(run_poisoned(device, prepare_attention_weights(c, p, Kind::kScores)).at("y"),
                  expected, tolerance_for(DType::kF32, 8));
    }
  }

  TEST_CASE("a NaN makes the allowed pairs of its row NaN") {
    AttentionCase c{.queries = 20, .keys = 20};
    c.masks.causal = true;
    AttentionProblem p = make_problem(c);
    std::memcpy(p.k.bytes.data() + 4 * (9 * 8 + 2), &kNan, 4);
    check_attention_weights_problem(c, p);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention_weights says what is wrong with its inputs") {
    const TensorDesc q{"q", DType::kF32, {1, 4, 5, 8}};
    const TensorDesc k{"k", DType::kF32, {1, 2, 7, 8}};
    const AttentionCase c{.heads = 4, .kv_heads = 2, .queries = 5, .keys = 7};
    AttentionWeightsAttrs attrs{make_attrs(c, no_score_terms()), 0, 0, Kind::kProbabilities};
    Result<TensorDesc> good = check_attention_weights(q, k, nullptr, attrs);
    REQUIRE(good.ok());
    CHECK(good->shape == Shape{1, 4, 5, 7});
    attrs.first_head = 3;
    attrs.head_count = 2;
    check_error(check_attention_weights(q, k, nullptr, attrs), "attention_weights", "2 heads");
    attrs.first_head = 9;
    attrs.head_count = 0;
    check_error(check_attention_weights(q, k, nullptr, attrs), "attention_weights", "head 9");
    attrs = {make_attrs(c, no_score_terms()), 0, 0, Kind::kProbabilities};
    attrs.attention.keys = 8;
    check_error(check_attention_weights(q, k, nullptr, attrs), "attention_weights", "k reaches");
    attrs.attention.keys = 7;
    attrs.attention.temperature = -1;
    check_error(check_attention_weights(q, k, nullptr, attrs), "attention_weights", "temperature");
  }

  TEST_CASE("attention_weights' plan") {
    const AttentionCase c{.heads = 4, .kv_heads = 2, .queries = 5, .keys = 7};
    Graph graph;
    const TensorId q = graph.add_external("q", DType::kF32, {1, 4, 5, 8});
    const TensorId k = graph.add_external("k", DType::kF32, {1, 2, 7, 8});
    const AttentionWeightsAttrs attrs{make_attrs(c, no_score_terms()), 1, 2, Kind::kProbabilities};
    REQUIRE(add_attention_weights(graph, {.q = q, .kv = k}, attrs).ok());
    const Plan plan =
        plan_with_kernel(graph, Tier::kBaseline, "attention_weights_row__f32_f32_f32");
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{10, 1, 1});
    plan_with_kernel(graph, Tier::kSubgroup, "attention_weights_row__f32_f32_f32_subgroup");
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
