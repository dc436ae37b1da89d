#include "ops/attention.h"

#include "ops/merged_projection.h"
#include "reference/multi_head_attention.h"

namespace vkformer::testing {
namespace {

void check_attention_problem(const AttentionCase& c, const AttentionProblem& p) {
  const PreparedOperator op = prepare_attention(c, p);
  const Array expected = reference_outputs(c, p).output;
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    check_close(run_poisoned(device, op).at("y"), expected,
                tolerance_for(DType::kF32, c.keys + c.head_width));
  }
}

void check_attention_case(const AttentionCase& c) {
  check_attention_problem(c, make_problem(c));
}

// (B, T, 3 D): q, k and v of a problem with equal heads and widths side by side.
Tensor merge_projection(const AttentionCase& c, const AttentionProblem& p) {
  const std::vector<float> parts[] = {*p.q.to_floats(), *p.k.to_floats(), *p.v.to_floats()};
  const int64_t width = c.heads * c.head_width;
  std::vector<float> merged(static_cast<size_t>(c.batch * c.queries * 3 * width));
  for (size_t at = 0; at < merged.size(); ++at) {
    const int64_t token = static_cast<int64_t>(at) / (3 * width);
    const int64_t column = static_cast<int64_t>(at) % width;
    const int64_t head = token / c.queries * c.heads + column / c.head_width;
    const int64_t from =
        (head * c.queries + token % c.queries) * c.head_width + column % c.head_width;
    merged[at] = parts[static_cast<int64_t>(at) % (3 * width) / width][static_cast<size_t>(from)];
  }
  return Tensor::from_floats({c.batch, c.queries, 3 * width}, merged);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a query without an allowed key gives zeros") {
    AttentionCase c{.queries = 5, .keys = 9, .terms = AttentionCase::kKeyMask};
    AttentionProblem p = make_problem(c);
    std::fill(p.key_mask->bytes.begin(), p.key_mask->bytes.end(), std::byte{0});
    set_element(p.v, 3, kNan);
    for (const TierDevice& device : tier_devices()) {
      const Tensor y = run_poisoned(device, prepare_attention(c, p)).at("y");
      check_close(y, reference::filled(y.shape, 0.0), {});
    }
  }

  TEST_CASE("attention with extreme temperatures and large logits") {
    for (float temperature : {1e-6f, 1e-3f, 1e3f, 1e6f}) {
      check_attention_case({.queries = 9, .keys = 66, .temperature = temperature});
    }
    check_attention_case({.queries = 9, .keys = 66, .spread = 30.0f});
    check_attention_case({.queries = 9, .keys = 66, .scale = 0.0f});
    // The scores overflow once divided; their differences do not matter then.
    check_attention_case({.queries = 9, .keys = 66, .spread = 1e6f, .temperature = 1e-30f});
  }

  TEST_CASE("NaN and infinity reach the rows that see them and no others") {
    const float specials[] = {kNan, kInfinity, -kInfinity};
    for (float special : specials) {
      for (int place = 0; place < 3; ++place) {
        AttentionCase c{.queries = 20, .keys = 20};
        c.masks.causal = true;
        AttentionProblem p = make_problem(c);
        // Element 2 of token 9 of q, k or v.
        set_element(place == 0 ? p.q : place == 1 ? p.k : p.v, 9 * 8 + 2, special);
        INFO("special ", special, " in ", place);
        check_attention_problem(c, p);
      }
    }
  }

  TEST_CASE("q, k and v from one merged projection, y in merged rows") {
    const AttentionCase c{
        .batch = 2, .heads = 3, .kv_heads = 3, .queries = 17, .keys = 17, .head_width = 8};
    const AttentionProblem p = make_problem(c);
    PreparedOperator op;
    const TensorId qkv = op.bind("qkv", merge_projection(c, p));
    Result<TensorId> y = add_attention(op.graph, {.q = qkv, .kv = qkv}, merged_attrs(c));
    REQUIRE(y.ok());
    op.name_output(*y, "y");
    const Array expected = reference::merge_heads(reference_outputs(c, p).output);
    for (const TierDevice& device : tier_devices()) {
      check_close(run_poisoned(device, op).at("y"), expected, tolerance_for(DType::kF32, 25));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention says what is wrong with its inputs") {
    const TensorDesc q{"q", DType::kF32, {2, 3, 5, 8}};
    const TensorDesc kv{"kv", DType::kF32, {2 * 3 * 7 * 16}};
    const AttentionCase c{.batch = 2, .heads = 3, .kv_heads = 3, .queries = 5, .keys = 7};
    const AttentionAttrs good = make_attrs(c, no_score_terms());
    CHECK(check_attention(q, kv, nullptr, good).ok());
    const auto message = [&](auto change) {
      AttentionAttrs a = good;
      change(a);
      Result<TensorDesc> checked = check_attention(q, kv, nullptr, a);
      return checked.ok() ? std::string("accepted") : checked.error().message;
    };
    using A = AttentionAttrs;
    CHECK(message([](A& a) { a.kv_heads = 2; }).find("do not divide") != std::string::npos);
    CHECK(message([](A& a) { a.queries = 6; }).find("q reaches element") != std::string::npos);
    CHECK(message([](A& a) { a.v.offset += 1; }).find("v reaches element") != std::string::npos);
    CHECK(message([](A& a) { a.keys = 0; }).find("keys is 0") != std::string::npos);
    CHECK(message([](A& a) { a.head_width = 257; }).find("limit of 256") != std::string::npos);
    CHECK(message([](A& a) { a.temperature = 0; }).find("temperature") != std::string::npos);
    CHECK(message([](A& a) { a.temperature = kNan; }).find("temperature") != std::string::npos);
    CHECK(message([](A& a) { a.scale = kInfinity; }).find("scale") != std::string::npos);
    CHECK(message([](A& a) { a.y_shape = {2, 3}; }).find("y ") != std::string::npos);
    CHECK(message([](A& a) { a.terms.bias_offset = 0; }).find("terms") != std::string::npos);
    CHECK(message([](A& a) { a.terms.window_left = INT32_MAX; }).find("window") !=
          std::string::npos);
    CHECK(message([](A& a) { a.q.batch_stride = ~0u; }).find("q reaches") != std::string::npos);
    const TensorDesc half{"q", DType::kF16, q.shape};
    CHECK_FALSE(check_attention(half, kv, nullptr, good).ok());
    const TensorDesc few{"terms", DType::kU32, {3}};
    AttentionAttrs masked = good;
    masked.terms.mask_offset = 0;
    CHECK_FALSE(check_attention(q, kv, &few, masked).ok());
  }

  TEST_CASE("attention's plan") {
    const AttentionCase c{
        .batch = 2, .heads = 3, .kv_heads = 3, .queries = 17, .keys = 17, .head_width = 8};
    Graph graph;
    const TensorId qkv = graph.add_external("qkv", DType::kF32, {2, 17, 72});
    REQUIRE(add_attention(graph, {.q = qkv, .kv = qkv}, merged_attrs(c)).ok());
    const Plan plan = plan_with_kernel(graph, Tier::kBaseline, "attention_blocks__f32_f32_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{3, 6, 1});
    CHECK(plan.dispatches[0].push.size() <= 128);
  }

  TEST_CASE("attention folds many heads and batch items over two axes") {
    AttentionCase c{.batch = 5000, .heads = 8, .kv_heads = 8};
    Graph graph;
    const TensorId qkv = graph.add_external("qkv", DType::kF32, {5000, 1, 3 * 64});
    REQUIRE(add_attention(graph, {.q = qkv, .kv = qkv}, merged_attrs(c)).ok());
    const Plan plan = plan_with_kernel(graph, Tier::kBaseline, "attention_blocks__f32_f32_f32");
    CHECK(plan.dispatches[0].groups == std::array<uint32_t, 3>{1, 32768, 2});
  }

  TEST_CASE("attention never shares memory between its inputs and its output") {
    const AttentionCase c{.queries = 4, .keys = 4};
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {1, 4, 24});
    AttentionAttrs a = merged_attrs(c);
    Result<TensorId> first = add_attention(graph, {.q = x, .kv = x}, a);
    REQUIRE(first.ok());
    a.q = merged_rows(4, 8, 0, 8);
    REQUIRE(add_attention(graph, {.q = *first, .kv = x}, a).ok());
    const Plan plan = plan_with_kernel(graph, Tier::kBaseline, "attention_blocks__f32_f32_f32");
    check_no_aliasing(plan);
    CHECK(plan.barriers.size() == 1);
  }
}

}  // namespace vkformer::testing
