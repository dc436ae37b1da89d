#include "ops/linear_attention.h"

#include <optional>

#include "ops/score_terms.h"
#include "ops/step_run.h"
#include "reference/linear_attention.h"

namespace vkformer::testing {
namespace {

using Causal = LinearAttentionAttrs::Causal;
using Map = LinearFeatureAttrs::Map;

uint32_t u32(int64_t value) {
  return static_cast<uint32_t>(value);
}

struct LinearAttentionCase {
  int64_t batch = 2;
  int64_t heads = 3;
  int64_t queries = 21;
  int64_t keys = 21;
  int64_t width = 8;        // E
  int64_t value_width = 8;  // Ev
  int64_t features = 0;     // m of favor; 0: elu
  double kernel_eps = 0;
  double epsilon = 1e-6;
  bool causal = false;
  bool masked = false;
  double scale = 1;  // of q and k

  // Random features have a free scale, and so no epsilon.
  double denominator_eps() const { return features > 0 ? 0.0 : epsilon; }
  std::string text() const {
    return "T=" + std::to_string(queries) + " S=" + std::to_string(keys) +
           " E=" + std::to_string(width) + " Ev=" + std::to_string(value_width) +
           " m=" + std::to_string(features) + (causal ? " causal" : "") +
           (masked ? " masked" : "") + (kernel_eps > 0 ? " kernel_eps" : "");
  }
};

struct LinearAttentionProblem {
  Array q, k, v, omega;
  std::optional<Tensor> mask;
};

LinearAttentionProblem make_linear_attention_problem(const LinearAttentionCase& c) {
  LinearAttentionProblem p{random_array({c.batch, c.heads, c.queries, c.width}, 1, c.scale),
                           random_array({c.batch, c.heads, c.keys, c.width}, 2, c.scale),
                           random_array({c.batch, c.heads, c.keys, c.value_width}, 3),
                           random_array({std::max<int64_t>(1, c.features), c.width}, 4),
                           {}};
  if (c.masked) p.mask = random_mask({c.batch, c.keys}, 5);
  return p;
}

LinearFeatureAttrs feature_attrs(const LinearAttentionCase& c) {
  return {.map = c.features > 0 ? Map::kFavor : Map::kElu,
          .kernel_eps = static_cast<float>(c.kernel_eps),
          .epsilon = static_cast<float>(c.denominator_eps())};
}

LinearAttentionAttrs linear_attention_attrs(const LinearAttentionCase& c) {
  const int64_t q = c.batch * c.heads * c.queries * c.width;
  const int64_t k = c.batch * c.heads * c.keys * c.width;
  return {.features = feature_attrs(c),
          .causal = c.causal ? Causal::kYes : Causal::kNo,
          .batch = u32(c.batch),
          .heads = u32(c.heads),
          .queries = u32(c.queries),
          .keys = u32(c.keys),
          .head_width = u32(c.width),
          .value_width = u32(c.value_width),
          .q = separate_heads(u32(c.heads), u32(c.queries), u32(c.width), 0),
          .k = separate_heads(u32(c.heads), u32(c.keys), u32(c.width), u32(q)),
          .v = separate_heads(u32(c.heads), u32(c.keys), u32(c.value_width), u32(q + k)),
          .y = separate_heads(u32(c.heads), u32(c.queries), u32(c.value_width), 0),
          .y_shape = {c.batch, c.heads, c.queries, c.value_width}};
}

Tensor key_bits(const Tensor& mask) {
  std::vector<uint8_t> kept(mask.bytes.size());
  std::memcpy(kept.data(), mask.bytes.data(), kept.size());
  return word_tensor(pack_key_mask(kept, mask.shape[0], mask.shape[1]),
                     {mask.shape[0], (mask.shape[1] + 31) / 32});
}

PreparedOperator prepare_linear_attention(const LinearAttentionCase& c,
                                          const LinearAttentionProblem& p,
                                          LinearAttentionAttrs attrs) {
  PreparedOperator op;
  Array x = reference::filled({p.q.size() + p.k.size() + p.v.size()}, 0.0);
  auto to = x.data.begin();
  for (const Array* part : {&p.q, &p.k, &p.v}) {
    to = std::copy(part->data.begin(), part->data.end(), to);
  }
  LinearAttentionInputs inputs{.x = op.bind("x", reference::to_tensor(x))};
  if (c.features > 0) inputs.omega = op.bind("omega", reference::to_tensor(p.omega));
  if (p.mask) inputs.mask = op.bind("mask", key_bits(*p.mask));
  const auto outputs = add_linear_attention(op.graph, inputs, attrs);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  op.name_output(outputs->y, "y");
  if (outputs->weights != kNoTensor) op.name_output(outputs->weights, "weights");
  return op;
}

reference::LinearAttentionOutputs expected_linear_attention(const LinearAttentionCase& c,
                                                            const LinearAttentionProblem& p) {
  reference::LinearAttentionOptions options;
  Array mask;
  if (p.mask) {
    mask = reference::from_tensor(*p.mask).value();
    options.key_mask = &mask;
  }
  if (c.features > 0) options.omega = &p.omega;
  options.kernel_eps = static_cast<double>(static_cast<float>(c.kernel_eps));
  options.epsilon = static_cast<double>(static_cast<float>(c.denominator_eps()));
  options.causal = c.causal;
  auto outputs = reference::linear_attention(p.q, p.k, p.v, options);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return *outputs;
}

void check_linear_attention_problem(const LinearAttentionCase& c, const LinearAttentionProblem& p) {
  const PreparedOperator op = prepare_linear_attention(c, p, linear_attention_attrs(c));
  const Array expected = expected_linear_attention(c, p).output;
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    check_close(run_poisoned(device, op).at("y"), expected,
                tolerance_for(DType::kF32, c.keys * (c.features > 0 ? c.features : c.width)));
  }
}

void check_linear_attention_case(const LinearAttentionCase& c) {
  check_linear_attention_problem(c, make_linear_attention_problem(c));
}

// The chosen heads of weights (B, H, T, S).
Array heads_of(const Array& weights, int64_t first, int64_t count) {
  const int64_t each = weights.dim(2) * weights.dim(3);
  Array chosen = reference::filled({weights.dim(0), count, weights.dim(2), weights.dim(3)}, 0.0);
  for (int64_t i = 0; i < chosen.size(); ++i) {
    const int64_t head = i / each;
    chosen[i] = weights[(head / count * weights.dim(1) + first + head % count) * each + i % each];
  }
  return chosen;
}

void check_weights(const LinearAttentionCase& c, uint32_t first, uint32_t count) {
  const LinearAttentionProblem p = make_linear_attention_problem(c);
  LinearAttentionAttrs attrs = linear_attention_attrs(c);
  attrs.maps = LinearAttentionAttrs::Maps::kChosen;
  attrs.first_head = first;
  attrs.head_count = count;
  const PreparedOperator op = prepare_linear_attention(c, p, attrs);
  const auto outputs = expected_linear_attention(c, p);
  const Array expected =
      heads_of(outputs.weights, first, count == 0 ? c.heads - first : int64_t{count});
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    const TensorMap results = run_poisoned(device, op);
    check_close(results.at("weights"), expected, tolerance_for(DType::kF32, 64 * c.keys));
    check_close(results.at("y"), outputs.output, tolerance_for(DType::kF32, 64 * c.keys));
  }
}

// A generation of `tokens` steps by hand: the rows of two beams of one item take turns as parents.
struct StepTest {
  LinearAttentionCase c;
  int64_t prompt = 0;                  // tokens that a full pass has summed
  static constexpr int64_t kRows = 4;  // two items of two beams
  static constexpr int64_t kCapacity = 9;
};

// x (R, 3 D) of the rows' tokens at position t: each row's own noise.
Array step_row(const LinearAttentionCase& c, uint32_t row, int64_t t) {
  return random_array({c.heads * (2 * c.width + c.value_width)},
                      100 * (row + 1) + static_cast<uint32_t>(t), c.scale);
}

struct StepRunner {
  explicit StepRunner(const StepTest& test)
      : t(test), omega(make_linear_attention_problem(test.c).omega) {
    const LinearAttentionCase& c = t.c;
    graph.set_step(u32(StepTest::kRows));
    const int64_t line = c.heads * (2 * c.width + c.value_width);
    LinearStepInputs inputs;
    inputs.x = graph.add_external("x", DType::kF32, {StepTest::kRows, line});
    if (c.features > 0) inputs.omega = graph.add_external("omega", DType::kF32, omega.shape);
    inputs.ancestry =
        graph.add_external("ancestry", DType::kU32, {StepTest::kRows, StepTest::kCapacity});
    const int64_t width = linear_state_width(feature_attrs(c), c.features, c.width, c.value_width);
    inputs.states =
        graph.add_external("states", DType::kF32, {StepTest::kRows, 2, c.heads * width});
    inputs.state = graph.add_external("state", DType::kU32, {kStateWords});
    const LinearStepAttrs attrs{.features = feature_attrs(c),
                                .heads = u32(c.heads),
                                .head_width = u32(c.width),
                                .value_width = u32(c.value_width),
                                .q_offset = 0,
                                .k_offset = u32(c.heads * c.width),
                                .v_offset = u32(2 * c.heads * c.width),
                                .beams = 2,
                                .capacity = StepTest::kCapacity};
    const auto y = add_linear_attention_step(graph, inputs, attrs);
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    graph.tensor(*y).kind = TensorKind::kExternal;
    graph.tensor(*y).name = "y";
  }

  const StepTest& t;
  Array omega;
  Graph graph;
};

// What a row's token at `position` gives after the tokens of the rows in `path` (one by position).
Array expected_step(const LinearAttentionCase& c, const Array& omega,
                    const std::vector<uint32_t>& path) {
  const auto keys = static_cast<int64_t>(path.size());
  Array q = reference::filled({1, c.heads, 1, c.width}, 0.0);
  Array k = reference::filled({1, c.heads, keys, c.width}, 0.0);
  Array v = reference::filled({1, c.heads, keys, c.value_width}, 0.0);
  for (int64_t j = 0; j < keys; ++j) {
    const Array row = step_row(c, path[static_cast<size_t>(j)], j);
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t e = 0; e < c.width; ++e) {
        q[h * c.width + e] = row[h * c.width + e];
        k[(h * keys + j) * c.width + e] = row[c.heads * c.width + h * c.width + e];
      }
      for (int64_t e = 0; e < c.value_width; ++e) {
        v[(h * keys + j) * c.value_width + e] = row[2 * c.heads * c.width + h * c.value_width + e];
      }
    }
  }
  reference::LinearAttentionOptions options;
  if (c.features > 0) options.omega = &omega;
  options.kernel_eps = static_cast<double>(static_cast<float>(c.kernel_eps));
  options.epsilon = static_cast<double>(static_cast<float>(c.denominator_eps()));
  auto outputs = reference::linear_attention(q, k, v, options);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  Array y = outputs->output;
  y.shape = {c.heads * c.value_width};
  return y;
}

// Six steps from nothing; after each, the beams of an item change places or one takes over both.
void check_steps(const TierDevice& device, const LinearAttentionCase& c) {
  const StepTest test{c};
  StepRunner runner(test);
  std::vector<std::vector<uint32_t>> paths(StepTest::kRows);
  Tensor states;
  for (int64_t position = 0; position < 6; ++position) {
    std::vector<uint32_t> ancestry(StepTest::kRows * StepTest::kCapacity, 0u);
    Array x = reference::filled({StepTest::kRows, c.heads * (2 * c.width + c.value_width)}, 0.0);
    for (uint32_t row = 0; row < StepTest::kRows; ++row) {
      std::copy(paths[row].begin(), paths[row].end(), ancestry.begin() + row * StepTest::kCapacity);
      const Array own = step_row(c, row, position);
      std::copy(own.data.begin(), own.data.end(), x.data.begin() + row * own.size());
      paths[row].push_back(row);
    }
    TensorMap given = {{"x", reference::to_tensor(x)},
                       {"ancestry", word_tensor(ancestry, {StepTest::kRows, StepTest::kCapacity})},
                       {"state", make_state({0, 1, 2, 3}, u32(position))}};
    if (c.features > 0) given.emplace("omega", reference::to_tensor(runner.omega));
    if (position > 0) given.emplace("states", states);
    const TensorMap results = run_step(device, runner.graph, given, 4);
    states = results.at("states");
    const auto y = results.at("y").to_floats();
    REQUIRE(y.ok());
    for (uint32_t row = 0; row < StepTest::kRows; ++row) {
      const Array expected = expected_step(c, runner.omega, paths[row]);
      const auto first = y->begin() + row * expected.size();
      INFO(device.tier, ", ", c.text(), ", row ", row, ", position ", position);
      check_close(Tensor::from_floats(expected.shape, {first, first + expected.size()}), expected,
                  tolerance_for(DType::kF32, 1024));
    }
    if (position % 2 == 0) {
      std::swap(paths[0], paths[1]);
      paths[2] = paths[3];
    }
  }
}

struct Widths {
  int64_t width, value_width, features;
};

// Without a projection and with one, all keys and causal.
void check_widths(const Widths& widths, double scale) {
  for (int64_t features : {int64_t{0}, widths.features}) {
    LinearAttentionCase c{
        .queries = 70, .keys = 70, .width = widths.width, .value_width = widths.value_width};
    c.features = features;
    c.scale = scale;
    check_linear_attention_case(c);
    c.causal = true;
    check_linear_attention_case(c);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("linear_attention over lengths around the tiles and chunks") {
    for (int64_t tokens : {1, 8, 9, 64, 65, 131, 513}) {
      for (bool causal : {false, true}) {
        check_linear_attention_case(
            {.batch = 1, .heads = 2, .queries = tokens, .keys = tokens, .causal = causal});
        check_linear_attention_case({.batch = 1,
                                     .heads = 2,
                                     .queries = tokens,
                                     .keys = tokens,
                                     .features = 13,
                                     .kernel_eps = causal ? 0.0 : 1e-4,
                                     .causal = causal});
      }
    }
  }

  TEST_CASE("linear_attention over widths and numbers of features") {
    for (const Widths& widths : {Widths{1, 1, 1}, Widths{7, 5, 3}, Widths{33, 64, 65}}) {
      check_widths(widths, 1.0);
    }
  }

  TEST_CASE("linear_attention over the widest heads") {
    check_widths({256, 130, 257}, 0.5);
  }

  TEST_CASE("linear_attention with masked keys, kernel_eps, and other numbers of queries") {
    for (int64_t features : {0, 24}) {
      for (double kernel_eps : {0.0, 1e-3}) {
        for (bool causal : {false, true}) {
          LinearAttentionCase c{.queries = 40, .keys = 90, .features = features, .causal = causal};
          c.masked = true;
          c.kernel_eps = features > 0 ? kernel_eps : 0.0;
          check_linear_attention_case(c);
          std::swap(c.queries, c.keys);
          check_linear_attention_case(c);
        }
      }
    }
  }

  TEST_CASE("linear_attention stays in range where exponentials of norms would not") {
    check_linear_attention_case(
        {.queries = 80, .keys = 80, .features = 32, .causal = true, .scale = 5});
    check_linear_attention_case({.queries = 80, .keys = 80, .features = 32, .scale = 5});
  }

  TEST_CASE("linear_attention's weights of all heads or one") {
    for (int64_t features : {0, 24}) {
      for (bool causal : {false, true}) {
        LinearAttentionCase c{
            .queries = 37, .keys = 37, .features = features, .causal = causal, .masked = true};
        check_weights(c, 0, 0);
        check_weights(c, 1, 1);
        c.kernel_eps = features > 0 ? 1e-3 : 0.0;
        check_weights(c, 0, 0);
      }
    }
  }

  TEST_CASE("linear_attention does not read masked keys, and no kept key gives zeros") {
    for (int64_t features : {0, 12}) {
      for (bool causal : {false, true}) {
        LinearAttentionCase c{
            .batch = 2, .heads = 1, .features = features, .epsilon = 0, .causal = causal};
        c.masked = true;
        LinearAttentionProblem p = make_linear_attention_problem(c);
        for (size_t j = 0; j < p.mask->bytes.size(); ++j) {
          if (p.mask->bytes[j] != std::byte{0}) continue;
          p.k[static_cast<int64_t>(j) * c.width] = kNan;
          p.v[static_cast<int64_t>(j) * c.value_width] = kInfinity;
        }
        for (size_t j = 0; j < 21; ++j) {
          p.mask->bytes[j] = std::byte{0};
          p.v[static_cast<int64_t>(j) * c.value_width + 1] = kNan;
        }
        check_linear_attention_problem(c, p);
      }
    }
  }

  TEST_CASE("linear_attention hands on NaN, to queries that see it") {
    for (int64_t features : {0, 12}) {
      LinearAttentionCase c{.batch = 1, .heads = 2, .features = features, .causal = true};
      LinearAttentionProblem p = make_linear_attention_problem(c);
      p.v[5 * c.value_width + 2] = kNan;
      check_linear_attention_problem(c, p);
    }
  }

  TEST_CASE("linear_attention in steps follows the parents of beams") {
    for (const TierDevice& device : tier_devices()) {
      check_steps(device, {.heads = 2, .width = 5, .value_width = 7});
      check_steps(device, {.heads = 2, .width = 8, .value_width = 8, .features = 70});
      check_steps(device, {.heads = 1,
                           .width = 4,
                           .value_width = 33,
                           .features = 9,
                           .kernel_eps = 1e-3,
                           .scale = 2});
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("linear_attention refuses inputs that do not fit") {
    const LinearAttentionCase c{.features = 12};
    LinearAttentionAttrs a = linear_attention_attrs(c);
    const TensorDesc x = floats_desc({3 * 2 * 3 * 21 * 8});
    const TensorDesc omega = floats_desc({12, 8});
    const std::string op = "linear_attention";
    CHECK(check_linear_attention(x, &omega, nullptr, a).ok());
    check_error(check_linear_attention(floats_desc({100}), &omega, nullptr, a), op, "100");
    check_error(check_linear_attention(x, nullptr, nullptr, a), op, "omega");
    a.features.epsilon = 1e-3f;
    check_error(check_linear_attention(x, &omega, nullptr, a), op, "0.001");
    a.features.epsilon = 0;
    const TensorDesc narrow = floats_desc({12, 7});
    check_error(check_linear_attention(x, &narrow, nullptr, a), op, "(m, 8)");
    const TensorDesc mask{"mask", DType::kU32, {2, 2}};
    check_error(check_linear_attention(x, &omega, &mask, a), op, "(2, 1)");
    a.features.kernel_eps = kNan;
    check_error(check_linear_attention(x, &omega, nullptr, a), op, "nan");
    a.features = {.map = Map::kElu};
    check_error(check_linear_attention(x, &omega, nullptr, a), op, "elu");
    a.maps = LinearAttentionAttrs::Maps::kChosen;
    a.first_head = 3;
    check_error(check_linear_attention(x, nullptr, nullptr, a), op, "there are 3");
  }

  TEST_CASE("linear_attention plans its kernels without aliasing, in memory of a bounded size") {
    LinearAttentionCase c{
        .batch = 1, .heads = 8, .queries = 32768, .keys = 32768, .width = 64, .value_width = 64};
    c.features = 256;
    Graph graph;
    const LinearAttentionAttrs attrs = linear_attention_attrs(c);
    LinearAttentionInputs inputs;
    inputs.x = graph.add_external("x", DType::kF32, {3 * 8 * 32768 * 64});
    inputs.omega = graph.add_external("omega", DType::kF32, {256, 64});
    const auto outputs = add_linear_attention(graph, inputs, attrs);
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    caps.limits.max_storage_range = 256ull << 20;
    const auto plan = make_plan(graph, caps, Precision::kF32);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    check_no_aliasing(*plan);
    CHECK(plan->arena_bytes < 256ull << 20);
    CHECK(plan->dump().find("linear_attention_output__f32_f32_f32 [") != std::string::npos);
  }
}

}  // namespace vkformer::testing
