// Sparse score terms: global tokens, packed documents, a prefix, a map of blocks, alone and
// together, in attention, attention_weights and softmax.
#include <algorithm>

#include "ops/attention_cases.h"
#include "ops/attention_weights.h"
#include "ops/softmax.h"
#include "reference/softmax.h"

namespace vkformer::testing {
namespace {

struct SparseCase {
  AttentionCase base;
  int64_t global = 0;       // tokens of an item, spread over it; the last item has none
  int64_t documents = 0;    // of a row
  int64_t prefix = 0;       // keys; an item more has one more
  int64_t block = 0;        // size; 0: no block map
  bool batch_maps = false;  // the block map has one slice for every item and head
};

// The problem and its sparse terms, as tensors.
struct SparseProblem {
  AttentionProblem base;
  ScoreTermsInput input;
};

Tensor ints(Shape shape, int64_t (*value)(int64_t row, int64_t column, int64_t by), int64_t by) {
  std::vector<int64_t> values;
  const int64_t columns = shape.back();
  for (int64_t at = 0; at < element_count(shape); ++at) {
    values.push_back(value(at / columns, at % columns, by));
  }
  return Tensor::from_ints(std::move(shape), values);
}

SparseProblem make_sparse(const SparseCase& c) {
  const AttentionCase& a = c.base;
  SparseProblem p{make_problem(a), {}};
  p.input = {p.base.key_mask, p.base.mask, p.base.bias, {}};
  if (p.base.slopes) p.input.alibi_slopes = *p.base.slopes->to_floats();
  if (c.global > 0) {
    p.input.global = Tensor::zeros(DType::kU8, {a.batch, a.keys});
    for (int64_t b = 0; b + 1 < a.batch || b == 0; ++b) {
      for (int64_t n = 0; n < c.global; ++n) {
        const int64_t token = (n * a.keys / c.global + b) % a.keys;
        p.input.global->bytes[static_cast<size_t>(b * a.keys + token)] = std::byte{1};
      }
    }
  }
  if (c.documents > 0) {
    // Documents of different lengths with any numbers; the first one goes on at the end of the row.
    p.input.documents = ints(
        {a.batch, a.keys},
        [](int64_t row, int64_t column, int64_t by) { return (column + row) * 7 / by % 5 - 1; },
        std::max<int64_t>(1, 7 * a.keys / (c.documents * 5)));
  }
  if (c.prefix > 0) {
    p.input.prefix = ints(
        {a.batch}, [](int64_t, int64_t column, int64_t by) { return column + by; }, c.prefix);
  }
  if (c.block > 0) {
    const Shape shape = {c.batch_maps ? a.batch : 1, c.batch_maps ? a.heads : 1,
                         a.queries / c.block, a.keys / c.block};
    p.input.block_size = c.block;
    // A third of the blocks; some count twice or more; the last row of blocks sees nothing.
    p.input.block_map = ints(
        shape,
        [](int64_t row, int64_t column, int64_t rows) {
          if (rows > 1 && row % rows == rows - 1) return int64_t{0};
          const int64_t n = (row * 5 + column * 3 + row * column) % 7;
          return n < 3 ? n : int64_t{0};
        },
        shape[2]);
  }
  return p;
}

ScoreTerms pack(const SparseCase& c, const SparseProblem& p) {
  const AttentionCase& a = c.base;
  Result<ScoreTerms> packed =
      pack_score_terms(p.input, std::array{a.batch, a.heads, a.queries, a.keys});
  REQUIRE_MESSAGE(packed.ok(), packed.error().message);
  ScoreTermsParams& params = packed->params;
  if (a.masks.causal) params.flags |= VKF_TERM_CAUSAL;
  if (a.masks.window_left) params.flags |= VKF_TERM_WINDOW_LEFT;
  if (a.masks.window_right) params.flags |= VKF_TERM_WINDOW_RIGHT;
  params.causal_offset = static_cast<int32_t>(a.masks.causal_offset);
  params.window_left = static_cast<int32_t>(a.masks.window_left.value_or(0));
  params.window_right = static_cast<int32_t>(a.masks.window_right.value_or(0));
  return *packed;
}

reference::AttentionOutputs expected_attention_sparse(const SparseCase& c, const SparseProblem& p) {
  const auto array = [](const std::optional<Tensor>& t) {
    return t ? *reference::from_tensor(*t) : reference::Array{};
  };
  const Array global = array(p.input.global);
  const Array documents = array(p.input.documents);
  const Array prefix = array(p.input.prefix);
  const Array map = array(p.input.block_map);
  AttentionCase a = c.base;
  if (p.input.global) a.masks.global = &global;
  if (p.input.documents) a.masks.documents = &documents;
  if (p.input.prefix) a.masks.prefix = &prefix;
  if (p.input.block_map) a.masks.block_map = &map;
  a.masks.block_size = std::max<int64_t>(1, c.block);
  return reference_outputs(a, p.base);
}

std::string text(const SparseCase& c) {
  return c.base.text() + " global " + std::to_string(c.global) + " documents " +
         std::to_string(c.documents) + " prefix " + std::to_string(c.prefix) + " block " +
         std::to_string(c.block) + (c.base.masks.causal ? " causal" : "");
}

// Output and probabilities of one graph.
void check_sparse(const SparseCase& c) {
  const SparseProblem p = make_sparse(c);
  const ScoreTerms terms = pack(c, p);
  PreparedOperator op;
  AttentionInputs inputs;
  inputs.q = op.bind("q", p.base.q);
  inputs.kv = op.bind("kv", join_kv(p.base.k, p.base.v));
  inputs.terms = op.bind("terms", terms.words);
  const AttentionAttrs attrs = make_attrs(c.base, terms.params);
  const Result<TensorId> y = add_attention(op.graph, inputs, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  const Result<TensorId> map = add_attention_weights(op.graph, inputs, {.attention = attrs});
  REQUIRE_MESSAGE(map.ok(), map.error().message);
  op.name_output(*y, "y");
  op.name_output(*map, "map");
  const reference::AttentionOutputs expected = expected_attention_sparse(c, p);
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", text(c));
    const TensorMap outputs = run_poisoned(device, op);
    const Tolerance tolerance = tolerance_for(DType::kF32, c.base.keys + c.base.head_width);
    check_close(outputs.at("y"), expected.output, tolerance);
    check_close(outputs.at("map"), expected.weights, tolerance);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("sparse attention: global tokens see and are seen beyond causal and windows") {
    for (int64_t tokens : {1, 16, 33, 130}) {
      for (int64_t global : {1, 40}) {
        SparseCase c{.base = {.batch = 2, .heads = 2, .kv_heads = 1, .queries = tokens},
                     .global = std::min(global, tokens)};
        c.base.keys = tokens;
        c.base.terms = AttentionCase::kKeyMask;
        c.base.masks.window_left = c.base.masks.window_right = 3;
        check_sparse(c);
        c.base.masks = {.causal = true};
        check_sparse(c);
      }
    }
  }

  TEST_CASE("sparse attention: documents of one row do not see each other") {
    for (int64_t tokens : {1, 17, 64, 131}) {
      for (int64_t documents : {1, 2, 9}) {
        SparseCase c{.base = {.batch = 2, .queries = tokens, .keys = tokens},
                     .documents = documents};
        check_sparse(c);
        c.base.masks.causal = true;
        check_sparse(c);
        c.base.masks.window_left = 6;
        c.base.terms = AttentionCase::kKeyMask | AttentionCase::kAlibi;
        check_sparse(c);
      }
    }
  }

  TEST_CASE("sparse attention: a prefix is seen by all") {
    for (int64_t prefix : {1, 5, 20, 63}) {
      SparseCase c{.base = {.batch = 2, .queries = 65, .keys = 65}, .prefix = prefix};
      c.base.masks.causal = true;
      check_sparse(c);
      c.base.masks.window_left = 4;
      check_sparse(c);
      // Fewer queries than keys, as a chunk of a longer prompt has.
      c.base.queries = 9;
      c.base.masks.causal_offset = 40;
      check_sparse(c);
    }
  }

  TEST_CASE("sparse attention: hidden blocks are not seen, others count as often as listed") {
    const int64_t cases[][3] = {{4, 4, 8},     {12, 20, 4},    {16, 16, 1}, {64, 64, 16},
                                {128, 64, 32}, {130, 195, 65}, {96, 96, 96}};
    for (const auto& [queries, keys, block] : cases) {
      if (queries % block != 0) continue;
      for (bool batch_maps : {false, true}) {
        SparseCase c{.base = {.batch = 2, .heads = 3, .kv_heads = 3, .queries = queries},
                     .block = block,
                     .batch_maps = batch_maps};
        c.base.keys = keys;
        check_sparse(c);
        c.base.temperature = 1.7f;
        c.base.terms = AttentionCase::kKeyMask | AttentionCase::kBias;
        check_sparse(c);
      }
    }
  }

  TEST_CASE("sparse attention: all terms together") {
    for (uint32_t which = 1; which < 16; ++which) {
      SparseCase c{.base = {.batch = 3,
                            .heads = 2,
                            .kv_heads = 2,
                            .queries = 48,
                            .keys = 48,
                            .terms = AttentionCase::kKeyMask | AttentionCase::kMask},
                   .global = (which & 1u) != 0 ? 3 : 0,
                   .documents = (which & 2u) != 0 ? 4 : 0,
                   .prefix = (which & 4u) != 0 ? 11 : 0,
                   .block = (which & 8u) != 0 ? 12 : 0};
      c.base.masks.causal = true;
      c.base.masks.window_left = 9;
      check_sparse(c);
    }
  }

  TEST_CASE("sparse attention: wide heads and grouped ones, in the tiled kernel too") {
    for (int64_t width : {1, 100, 256}) {
      SparseCase c{.base = {.batch = 2,
                            .heads = 4,
                            .kv_heads = 2,
                            .queries = 40,
                            .keys = 40,
                            .head_width = width,
                            .value_width = width},
                   .global = 2,
                   .documents = 2};
      c.base.masks.window_left = c.base.masks.window_right = 2;
      check_sparse(c);
      c.block = 8;
      check_sparse(c);
    }
  }

  TEST_CASE("sparse attention: NaN in what is hidden stays there") {
    SparseCase c{.base = {.queries = 32, .keys = 32}, .block = 8};
    SparseProblem p = make_sparse(c);
    const std::vector<int64_t> map = {1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0};
    p.input.block_map = Tensor::from_ints({1, 1, 4, 4}, map);
    // Keys and values of the last block of keys, which no block of queries sees.
    for (Tensor* t : {&p.base.k, &p.base.v}) {
      for (size_t at = 24 * 8; at < 32 * 8; ++at) std::memcpy(t->bytes.data() + 4 * at, &kNan, 4);
    }
    const ScoreTerms terms = pack(c, p);
    PreparedOperator op;
    AttentionInputs inputs;
    inputs.q = op.bind("q", p.base.q);
    inputs.kv = op.bind("kv", join_kv(p.base.k, p.base.v));
    inputs.terms = op.bind("terms", terms.words);
    const AttentionAttrs attrs = make_attrs(c.base, terms.params);
    op.name_output(add_attention(op.graph, inputs, attrs).value(), "y");
    op.name_output(add_attention_weights(op.graph, inputs, {.attention = attrs}).value(), "map");
    for (const TierDevice& device : tier_devices()) {
      INFO(device.tier);
      for (const auto& [name, tensor] : run_poisoned(device, op)) {
        const std::vector<float> values = *tensor.to_floats();
        CHECK(std::none_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
      }
    }
  }

  TEST_CASE("sparse softmax: every term") {
    SparseCase c{.base = {.batch = 2,
                          .heads = 2,
                          .kv_heads = 2,
                          .queries = 24,
                          .keys = 24,
                          .terms = AttentionCase::kKeyMask},
                 .global = 2,
                 .documents = 3,
                 .prefix = 4,
                 .block = 6};
    c.base.masks.causal = true;
    c.base.masks.window_left = 5;
    for (float temperature : {1.0f, 0.5f}) {
      const SparseProblem p = make_sparse(c);
      const ScoreTerms terms = pack(c, p);
      PreparedOperator op;
      const Tensor x = reference::to_tensor(random_array({2, 2, 24, 24}, 5));
      const TensorId x_id = op.bind("x", x);
      const TensorId terms_id = op.bind("terms", terms.words);
      const SoftmaxAttrs attrs{.temperature = temperature, .terms = terms.params};
      op.name_output(add_softmax(op.graph, x_id, terms_id, attrs).value(), "y");
      const Array key_mask = *reference::from_tensor(*p.input.key_mask);
      const Array global = *reference::from_tensor(*p.input.global);
      const Array documents = *reference::from_tensor(*p.input.documents);
      const Array prefix = *reference::from_tensor(*p.input.prefix);
      const Array map = *reference::from_tensor(*p.input.block_map);
      reference::SoftmaxOptions options{.temperature = temperature, .masks = c.base.masks};
      options.masks.key_mask = &key_mask;
      options.masks.global = &global;
      options.masks.documents = &documents;
      options.masks.prefix = &prefix;
      options.masks.block_map = &map;
      options.masks.block_size = c.block;
      const Array expected = reference::softmax(*reference::from_tensor(x), options).value();
      for (const TierDevice& device : tier_devices()) {
        check_close(run_poisoned(device, op).at("y"), expected, tolerance_for(DType::kF32, 24));
      }
    }
  }

  TEST_CASE("attention over 32,768 keys sees the last one on every tier") {
    AttentionCase c{.queries = 8, .keys = 32768, .head_width = 64, .value_width = 64};
    AttentionProblem p;
    p.q = Tensor::zeros(DType::kF32, {1, 1, c.queries, 64});
    p.k = Tensor::zeros(DType::kF32, {1, 1, c.keys, 64});
    p.v = Tensor::zeros(DType::kF32, {1, 1, c.keys, 64});
    const float last = 32768.0f;
    std::memcpy(p.v.bytes.data() + p.v.bytes.size() - 4, &last, 4);
    PreparedOperator op;
    AttentionInputs inputs;
    inputs.q = op.bind("q", p.q);
    inputs.kv = op.bind("kv", join_kv(p.k, p.v));
    op.name_output(add_attention(op.graph, inputs, make_attrs(c, no_score_terms())).value(), "y");
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;  // its plans are not made for a software device's limits
      INFO(device.tier);
      const std::vector<float> y = *run_poisoned(device, op).at("y").to_floats();
      CHECK(y[63] == doctest::Approx(1.0).epsilon(1e-5));
      CHECK(y[62] == 0.0f);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("sparse terms that do not fit are refused with both numbers") {
    const auto message = [](ScoreTermsInput input, std::array<int64_t, 4> dims) {
      const Result<ScoreTerms> packed = pack_score_terms(input, dims);
      return packed.ok() ? std::string("accepted") : packed.error().message;
    };
    const auto has = [](const std::string& text, const char* part) {
      INFO(text);
      CHECK(text.find(part) != std::string::npos);
    };
    ScoreTermsInput global;
    global.global = Tensor::zeros(DType::kU8, {1, 6});
    CHECK(message(global, {1, 2, 6, 6}) == "accepted");
    has(message(global, {1, 2, 5, 6}), "as many queries as keys");
    has(message(global, {2, 2, 6, 6}), "[global]");
    ScoreTermsInput documents;
    documents.documents = Tensor::zeros(DType::kI64, {1, 5});
    has(message(documents, {1, 2, 6, 6}), "[documents]");
    ScoreTermsInput prefix;
    prefix.prefix = Tensor::from_ints({2}, std::vector<int64_t>{0, 7});
    has(message(prefix, {2, 1, 6, 6}), "[prefix] is 7 tokens, but there are 6 keys");
    has(message(prefix, {1, 1, 6, 6}), "[prefix] has shape");
    ScoreTermsInput blocks;
    blocks.block_map = Tensor::zeros(DType::kU8, {1, 1, 2, 2});
    blocks.block_size = 4;
    has(message(blocks, {1, 1, 6, 8}), "[block_size] is 4, but there are 6 queries and 8 keys");
    has(message(blocks, {1, 1, 12, 8}), "[block_map] has shape");
    blocks.block_size = 0;
    has(message(blocks, {1, 1, 8, 8}), "[block_size] is 0");
    blocks.block_size = 4;
    blocks.block_map = Tensor::from_ints({1, 1, 2, 2}, std::vector<int64_t>{1, 0, -1, 0});
    has(message(blocks, {1, 1, 8, 8}), "holds -1");
  }

  TEST_CASE("checks of sparse terms in words that a caller packed") {
    const TensorDesc words{"terms", DType::kU32, {12}};
    ScoreTermsParams params = no_score_terms();
    params.flags = VKF_TERM_GLOBAL;
    const std::array<uint32_t, 4> dims = {2, 3, 4, 4};
    const auto message = [&](const TensorDesc* terms, std::array<uint32_t, 4> sizes) {
      const Status status = check_terms(OpId::k_attention, terms, params, sizes);
      return status.ok() ? std::string("accepted") : status.error().message;
    };
    CHECK(message(&words, dims).find("starts at word 4294967295") != std::string::npos);
    params.sparse_offset = 8;
    CHECK(message(&words, dims) == "accepted");
    params.sparse_offset = 9;
    CHECK(message(&words, dims).find("starts at word 9 and needs 4") != std::string::npos);
    CHECK(message(nullptr, dims).find("no terms tensor") != std::string::npos);
    params.sparse_offset = 8;
    CHECK(message(&words, {2, 3, 4, 5}).find("4 queries and 5 keys") != std::string::npos);
    params.flags = VKF_TERM_MASKED_QUERIES;
    CHECK(message(&words, dims).find("need a key mask") != std::string::npos);
  }

  TEST_CASE("what neighbours visit by their blocks is known, and too much is refused") {
    const std::vector<std::vector<SeenBlock>> rows = {{{0}, {1}, {2}}, {{0}}, {{1}, {2}}, {},
                                                      {{5}},           {{0}}};
    CHECK(most_visited_keys(64, 3, rows) == 4 * 64);  // queries of two blocks are neighbors
    CHECK(most_visited_keys(8, 3, rows) == 6 * 8);
    CHECK(most_visited_keys(1, 6, rows) == 8);
    CHECK(most_visited_keys(1, 3, rows) == 6);
    const AttentionCase c{.queries = 4, .keys = 4};
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {1, 4, 24});
    AttentionAttrs attrs = make_attrs(c, no_score_terms());
    attrs.most_visited = 1u << 20;
    REQUIRE(add_attention(graph, {.q = x, .kv = x}, attrs).ok());
    DeviceCaps software = caps_of_tier(Tier::kSubgroup);
    CHECK(make_plan(graph, software, Precision::kF32).ok());
    software.device_class = DeviceClass::kSoftware;
    const Result<Plan> plan = make_plan(graph, software, Precision::kF32);
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().message.find("no kernel for") != std::string::npos);
  }

  TEST_CASE("hidden blocks and far keys cost nothing") {
    const auto flops = [](const SparseCase& c) {
      const SparseProblem p = make_sparse(c);
      const ScoreTerms terms = pack(c, p);
      Graph graph;
      const AttentionCase& a = c.base;
      const TensorId q = graph.add_external("q", DType::kF32, p.base.q.shape);
      const TensorId kv = graph.add_external("kv", DType::kF32, {2 * p.base.k.count()});
      const TensorId words = graph.add_external("terms", DType::kU32, terms.words.shape);
      AttentionAttrs attrs = make_attrs(a, terms.params);
      attrs.visited = terms.keys_of_blocks;
      REQUIRE(add_attention(graph, {.q = q, .kv = kv, .terms = words}, attrs).ok());
      return make_plan(graph, caps_of_tier(Tier::kBaseline), Precision::kF32)->flops();
    };
    SparseCase window{.base = {.queries = 4096, .keys = 4096}};
    const double dense = flops(window);
    window.base.masks.window_left = window.base.masks.window_right = 64;
    CHECK(flops(window) < dense / 25);
    SparseCase blocks{.base = {.queries = 1024, .keys = 1024}, .block = 32};
    CHECK(flops(blocks) < dense / 16 / 2);
  }
}

}  // namespace vkformer::testing
