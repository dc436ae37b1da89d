#include "ops/attention.h"

#include "ops/attention_cases.h"
#include "support/test_device.h"

namespace vkformer {
namespace {

using testing::AttentionCase;
using testing::AttentionProblem;

// The GPU's y (B, H, T, Ev), poisoned before and run three times.
Tensor run_attention(const AttentionCase& c, const AttentionProblem& p) {
  const ScoreTerms terms = testing::make_terms(c, p);
  Graph graph;
  TensorMap inputs = {
      {"q", p.q}, {"kv", testing::join_kv(p.k, p.v)}, {"terms", terms.words}};
  AttentionInputs ids;
  ids.q = graph.add_external("q", DType::kF32, p.q.shape);
  ids.kv = graph.add_external("kv", DType::kF32, inputs.at("kv").shape);
  ids.terms = graph.add_external("terms", DType::kU32, terms.words.shape);
  Result<TensorId> y = add_attention(graph, ids, testing::make_attrs(c, terms.params));
  REQUIRE_MESSAGE(y, (y ? "" : y.error().message));
  graph.tensor(*y).kind = TensorKind::kExternal;
  graph.tensor(*y).name = "y";
  Result<GraphRunReport> report =
      run_graph(testing::test_device(), graph, inputs,
                {.poison = GraphRunOptions::Poison::kOn, .repeats = 3});
  REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
  return report->outputs.at("y");
}

int64_t wrong_elements(const AttentionCase& c, const AttentionProblem& p) {
  const Tensor y = run_attention(c, p);
  return testing::count_wrong(y, testing::reference_outputs(c, p).output,
                              testing::tolerance_for(DType::kF32, c.keys + c.head_width));
}

void expect_equal(const AttentionCase& c) {
  INFO(c.text());
  CHECK(wrong_elements(c, testing::make_problem(c)) == 0);
}

void set_element(Tensor& tensor, size_t index, float value) {
  std::memcpy(tensor.bytes.data() + 4 * index, &value, 4);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention over lengths around the tiles") {
    for (int64_t queries : {1, 7, 8, 9, 63, 64, 65, 145}) {
      for (int64_t keys : {1, 7, 8, 9, 63, 64, 65, 257}) {
        expect_equal({.queries = queries, .keys = keys, .head_width = 16, .value_width = 16});
      }
    }
  }

  TEST_CASE("attention over head widths, which may differ for values") {
    const int64_t widths[][2] = {{8, 8},   {16, 16}, {40, 40},   {64, 64}, {80, 80}, {96, 96},
                                 {128, 128}, {256, 256}, {1, 1}, {7, 5},   {64, 130}, {33, 256}};
    for (const auto& [head_width, value_width] : widths) {
      for (int64_t queries : {1, 13}) {
        expect_equal({.batch = 2,
                      .heads = 3,
                      .kv_heads = 3,
                      .queries = queries,
                      .keys = 37,
                      .head_width = head_width,
                      .value_width = value_width});
      }
    }
  }

  TEST_CASE("attention with grouped key and value heads") {
    for (int64_t kv_heads : {1, 2, 3, 6}) {
      expect_equal({.batch = 2,
                    .heads = 6,
                    .kv_heads = kv_heads,
                    .queries = 11,
                    .keys = 19,
                    .head_width = 8,
                    .value_width = 12});
    }
  }

  TEST_CASE("attention with every mask and bias, alone and together") {
    for (uint32_t terms = 0; terms < 16; ++terms) {
      AttentionCase c{.batch = 2,
                      .heads = 2,
                      .kv_heads = 2,
                      .queries = 21,
                      .keys = 70,
                      .head_width = 8,
                      .value_width = 8,
                      .terms = terms};
      expect_equal(c);
      c.masks.causal = true;
      expect_equal(c);
      c.masks.causal_offset = 49;
      c.masks.window_left = 5;
      expect_equal(c);
      c.masks.causal = false;
      c.masks.window_right = 3;
      expect_equal(c);
    }
  }

  TEST_CASE("attention with windows that leave whole tiles and whole rows empty") {
    AttentionCase c{.queries = 257, .keys = 257, .head_width = 8, .value_width = 8};
    c.masks.causal = true;
    c.masks.window_left = 3;
    expect_equal(c);
    c.masks.causal_offset = -200;
    expect_equal(c);
    c.masks.causal_offset = 5000;
    expect_equal(c);
    c.masks.causal_offset = -5000;
    expect_equal(c);
  }

  TEST_CASE("a query without an allowed key gives zeros") {
    AttentionCase c{.queries = 5, .keys = 9, .terms = AttentionCase::kKeyMask};
    AttentionProblem p = testing::make_problem(c);
    std::fill(p.key_mask->bytes.begin(), p.key_mask->bytes.end(), std::byte{0});
    set_element(p.v, 3, NAN);
    const std::vector<float> y = *run_attention(c, p).to_floats();
    for (float value : y) CHECK(value == 0.0f);
  }

  TEST_CASE("attention with extreme temperatures and large logits") {
    for (float temperature : {1e-6f, 1e-3f, 1e3f, 1e6f}) {
      expect_equal({.queries = 9, .keys = 66, .temperature = temperature});
    }
    expect_equal({.queries = 9, .keys = 66, .spread = 30.0f});
    expect_equal({.queries = 9, .keys = 66, .scale = 0.0f});
    // The scores overflow once divided; their differences do not matter then.
    expect_equal({.queries = 9, .keys = 66, .spread = 1e6f, .temperature = 1e-30f});
  }

  TEST_CASE("NaN and infinity reach the rows that see them and no others") {
    const float specials[] = {NAN, INFINITY, -INFINITY};
    for (float special : specials) {
      for (int place = 0; place < 3; ++place) {
        AttentionCase c{.queries = 20, .keys = 20};
        c.masks.causal = true;
        AttentionProblem p = testing::make_problem(c);
        // Element 2 of token 9 of q, k or v.
        set_element(place == 0 ? p.q : place == 1 ? p.k : p.v, 9 * 8 + 2, special);
        INFO("special ", special, " in ", place);
        CHECK(wrong_elements(c, p) == 0);
      }
    }
  }

  TEST_CASE("q, k and v from one merged projection, y in merged rows") {
    // (B, T, 3 D) with D = H * E.
    const AttentionCase c{
        .batch = 2, .heads = 3, .kv_heads = 3, .queries = 17, .keys = 17, .head_width = 8};
    const AttentionProblem p = testing::make_problem(c);
    const std::vector<float> parts[] = {*p.q.to_floats(), *p.k.to_floats(), *p.v.to_floats()};
    std::vector<float> merged(2 * 17 * 72);
    for (size_t i = 0; i < merged.size(); ++i) {
      const size_t token = i / 72;
      const size_t column = i % 24;
      const size_t from = ((token / 17 * 3 + column / 8) * 17 + token % 17) * 8 + column % 8;
      merged[i] = parts[i % 72 / 24][from];
    }
    Graph graph;
    const TensorId qkv = graph.add_external("qkv", DType::kF32, {2, 17, 72});
    AttentionAttrs a;
    a.batch = 2;
    a.heads = a.kv_heads = 3;
    a.queries = a.keys = 17;
    a.head_width = a.value_width = 8;
    a.q = merged_rows(17, 72, 0, 8);
    a.k = merged_rows(17, 72, 24, 8);
    a.v = merged_rows(17, 72, 48, 8);
    Result<TensorId> y = add_attention(graph, {.q = qkv, .kv = qkv}, a);
    REQUIRE(y);
    CHECK(graph.tensor(*y).shape == Shape{2, 17, 24});
    graph.tensor(*y).kind = TensorKind::kExternal;
    graph.tensor(*y).name = "y";
    Result<GraphRunReport> report =
        run_graph(testing::test_device(), graph,
                  {{"qkv", Tensor::from_floats({2, 17, 72}, merged)}},
                  {.poison = GraphRunOptions::Poison::kOn});
    REQUIRE(report);
    const std::vector<float> actual = *report->outputs.at("y").to_floats();
    const reference::Array expected = testing::reference_outputs(c, p).output;
    for (size_t i = 0; i < actual.size(); ++i) {
      const size_t token = i / 24;
      const size_t column = i % 24;
      const size_t from = ((token / 17 * 3 + column / 8) * 17 + token % 17) * 8 + column % 8;
      CHECK(actual[i] == doctest::Approx(expected.data[from]).epsilon(1e-5));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("attention says what is wrong with its inputs") {
    const TensorDesc q{"q", DType::kF32, {2, 3, 5, 8}};
    const TensorDesc kv{"kv", DType::kF32, {2 * 3 * 7 * 16}};
    const AttentionCase c{.batch = 2, .heads = 3, .kv_heads = 3, .queries = 5, .keys = 7};
    const AttentionAttrs good = testing::make_attrs(c, no_score_terms());
    CHECK(check_attention(q, kv, nullptr, good));
    const auto message = [&](auto change) {
      AttentionAttrs a = good;
      change(a);
      Result<TensorDesc> checked = check_attention(q, kv, nullptr, a);
      return checked ? std::string("accepted") : checked.error().message;
    };
    using A = AttentionAttrs;
    CHECK(message([](A& a) { a.kv_heads = 2; }).find("do not divide") != std::string::npos);
    CHECK(message([](A& a) { a.queries = 6; }).find("q reaches element") != std::string::npos);
    CHECK(message([](A& a) { a.v.offset += 1; }).find("v reaches element") != std::string::npos);
    CHECK(message([](A& a) { a.keys = 0; }).find("keys is 0") != std::string::npos);
    CHECK(message([](A& a) { a.head_width = 257; }).find("limit of 256") != std::string::npos);
    CHECK(message([](A& a) { a.temperature = 0; }).find("temperature") != std::string::npos);
    CHECK(message([](A& a) { a.temperature = NAN; }).find("temperature") != std::string::npos);
    CHECK(message([](A& a) { a.scale = INFINITY; }).find("scale") != std::string::npos);
    CHECK(message([](A& a) { a.y_shape = {2, 3}; }).find("y ") != std::string::npos);
    CHECK(message([](A& a) { a.terms.bias_offset = 0; }).find("terms") != std::string::npos);
    CHECK(message([](A& a) { a.terms.window_left = INT32_MAX; }).find("window") !=
          std::string::npos);
    CHECK(message([](A& a) { a.q.batch_stride = ~0u; }).find("q reaches") != std::string::npos);
    const TensorDesc half{"q", DType::kF16, q.shape};
    CHECK(!check_attention(half, kv, nullptr, good));
    const TensorDesc few{"terms", DType::kU32, {3}};
    AttentionAttrs masked = good;
    masked.terms.mask_offset = 0;
    CHECK(!check_attention(q, kv, &few, masked));
  }

  TEST_CASE("attention's plan") {
    Graph graph;
    const TensorId qkv = graph.add_external("qkv", DType::kF32, {2, 17, 72});
    AttentionAttrs a;
    a.batch = 2;
    a.heads = a.kv_heads = 3;
    a.queries = a.keys = 17;
    a.head_width = a.value_width = 8;
    a.q = merged_rows(17, 72, 0, 8);
    a.k = merged_rows(17, 72, 24, 8);
    a.v = merged_rows(17, 72, 48, 8);
    graph.set_scope("encoder.0");
    REQUIRE(add_attention(graph, {.q = qkv, .kv = qkv}, a));
    DeviceCaps caps;
    caps.device_class = DeviceClass::kDiscrete;
    Result<Plan> plan = make_plan(graph, caps, Precision::kF32);
    REQUIRE(plan);
    REQUIRE(plan->dispatches.size() == 1);
    const Dispatch& d = plan->dispatches[0];
    CHECK(d.groups == std::array<uint32_t, 3>{3, 6, 1});
    CHECK(d.bindings.size() == 4);
    CHECK(d.push.size() <= 128);
    CHECK(plan->dump().find("attention_tiled__f32_f32_f32 [3 x 6 x 1] r%0 r%0 r%0 w%1") !=
          std::string::npos);
    caps.tier = Tier::kSubgroup;
    CHECK(make_plan(graph, caps, Precision::kF32)->dump().find("_subgroup") != std::string::npos);
  }

  TEST_CASE("attention never shares memory between its inputs and its output") {
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {1, 4, 24});
    AttentionAttrs a;
    a.queries = a.keys = 4;
    a.head_width = a.value_width = 8;
    a.q = merged_rows(4, 24, 0, 8);
    a.k = merged_rows(4, 24, 8, 8);
    a.v = merged_rows(4, 24, 16, 8);
    Result<TensorId> first = add_attention(graph, {.q = x, .kv = x}, a);
    REQUIRE(first);
    a.q = merged_rows(4, 8, 0, 8);
    Result<TensorId> second = add_attention(graph, {.q = *first, .kv = x}, a);
    REQUIRE(second);
    Result<Plan> plan = make_plan(graph, DeviceCaps{}, Precision::kF32);
    REQUIRE(plan);
    const PlanBuffer& one = plan->buffers[*first];
    const PlanBuffer& two = plan->buffers[*second];
    CHECK((one.offset + one.bytes <= two.offset || two.offset + two.bytes <= one.offset));
    REQUIRE(plan->barriers.size() == 1);
    CHECK(plan->barriers[0].before_dispatch == 1);
  }
}

}  // namespace vkformer
