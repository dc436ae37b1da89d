// What changes a score before its terms, by the operator's names: a soft cap and relative
// positions; and how many keys a kernel visits.
#include <algorithm>
#include <cstdio>

#include "operators/operator_adaptors.h"
#include "ops/attention_cases.h"
#include "ops/key_walk.h"

namespace vkformer::testing {
namespace {

struct ShapedCase {
  int64_t batch = 1;
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t queries = 20;
  int64_t keys = 20;
  int64_t head_width = 8;
  int64_t value_width = 8;
  double softcap = 0;
  int64_t reach = -1;  // -1: no relative positions
  bool per_head = false;
  bool biases = false;
  bool queries_by_distance = false;
  bool products = false;
  bool values = false;
  bool causal = false;
  int64_t causal_offset = 0;
  int64_t window_left = -1;
  int64_t documents = 0;  // of a row

  std::string text() const {
    return "B" + std::to_string(batch) + " H" + std::to_string(heads) + " T" +
           std::to_string(queries) + " S" + std::to_string(keys) + " E" +
           std::to_string(head_width) + "/" + std::to_string(value_width) + " reach " +
           std::to_string(reach) + (per_head ? " per head" : "") + (biases ? " biases" : "") +
           (queries_by_distance ? " queries" : "") + (products ? " products" : "") +
           (values ? " values" : "") + " documents " + std::to_string(documents);
  }
};

TensorMap make_inputs(const ShapedCase& c) {
  Noise noise;
  TensorMap inputs;
  inputs["Q"] = noise.tensor({c.batch, c.heads, c.queries, c.head_width}, 2.0f);
  inputs["K"] = noise.tensor({c.batch, c.kv_heads, c.keys, c.head_width}, 2.0f);
  inputs["V"] = noise.tensor({c.batch, c.kv_heads, c.keys, c.value_width}, 1.0f);
  const auto rows = [&](int64_t width) {
    const int64_t count = 2 * c.reach + 1;
    return noise.tensor(c.per_head ? Shape{count, c.heads, width} : Shape{count, width}, 1.0f);
  };
  if (c.reach >= 0) inputs["relative_keys"] = rows(c.head_width);
  if (c.queries_by_distance) inputs["relative_queries"] = rows(c.head_width);
  if (c.products) {
    inputs["relative_products"] = noise.tensor({c.batch, c.heads, c.keys, 2 * c.reach + 1}, 1.0f);
  }
  if (c.biases) {
    inputs["content_bias"] = noise.tensor({c.heads, c.head_width}, 1.0f);
    inputs["position_bias"] = noise.tensor({c.heads, c.head_width}, 1.0f);
  }
  if (c.values) inputs["relative_values"] = rows(c.value_width);
  if (c.documents > 0) {
    std::vector<int64_t> documents;
    for (int64_t at = 0; at < c.batch * c.keys; ++at) {
      documents.push_back(at % c.keys * c.documents / c.keys);
    }
    inputs["documents"] = Tensor::from_ints({c.batch, c.keys}, documents);
  }
  return inputs;
}

std::string attributes_of(const ShapedCase& c, const std::string& more = "") {
  std::string text = "{\"causal_offset\": " + std::to_string(c.causal_offset);
  if (c.causal) text += ", \"causal\": true";
  if (c.window_left >= 0) text += ", \"window_left\": " + std::to_string(c.window_left);
  if (c.softcap > 0) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.9g", c.softcap);
    text += ", \"softcap\": " + std::string(number);
  }
  return text + more + "}";
}

Result<PreparedOperator> prepare_attention_relative(const ShapedCase& c, const TensorMap& inputs,
                                                    const std::string& more = "",
                                                    bool weights = false) {
  const OperatorCall call{weights ? "attention_weights" : "attention", attributes_of(c, more),
                          inputs};
  const OperatorOptions options;
  VKF_ASSIGN(const OperatorArguments arguments, OperatorArguments::parse(call, options));
  return weights ? prepare_attention_weights(arguments) : prepare_attention(arguments);
}

reference::AttentionOutputs expected_attention_relative(const ShapedCase& c,
                                                        const TensorMap& inputs) {
  const auto array = [&](const char* name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? Array{} : *reference::from_tensor(found->second);
  };
  const Array keys = array("relative_keys"), values = array("relative_values");
  const Array queries = array("relative_queries"), products = array("relative_products");
  const Array content = array("content_bias"), position = array("position_bias");
  const Array documents = array("documents");
  reference::AttentionOptions options;
  options.softcap = c.softcap;
  options.masks.causal = c.causal;
  options.masks.causal_offset = c.causal_offset;
  if (c.window_left >= 0) options.masks.window_left = c.window_left;
  if (c.documents > 0) options.masks.documents = &documents;
  if (c.reach >= 0) options.relative.keys = &keys;
  if (c.queries_by_distance) options.relative.queries = &queries;
  if (c.products) options.relative.products = &products;
  if (c.values) options.relative.values = &values;
  if (c.biases) options.relative.content_bias = &content;
  if (c.biases) options.relative.position_bias = &position;
  auto outputs = reference::attention_weights(array("Q"), array("K"), array("V"), options);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return std::move(outputs).value();
}

void check_attention_relative_case(const ShapedCase& c, const TensorMap& inputs) {
  const auto op = prepare_attention_relative(c, inputs, "", true);
  REQUIRE_MESSAGE(op.ok(), op.error().message);
  const reference::AttentionOutputs expected = expected_attention_relative(c, inputs);
  const Tolerance tolerance = tolerance_for(DType::kF32, c.keys + 2 * c.head_width);
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier, ", ", c.text());
    const TensorMap outputs = run_poisoned(device, *op);
    check_close(outputs.at("output"), expected.output, tolerance);
    check_close(outputs.at("weights"), expected.weights, tolerance);
    check_close(outputs.at("entropy"), expected.entropy, tolerance);
  }
}

void check_attention_relative_case(const ShapedCase& c) {
  check_attention_relative_case(c, make_inputs(c));
}

std::string message(const ShapedCase& c, const TensorMap& inputs, const std::string& more = "") {
  const auto op = prepare_attention_relative(c, inputs, more);
  return op.ok() ? "accepted" : op.error().message;
}

void check_visits(const OperatorCall& call, const ScoreTermsParams& params,
                  const std::vector<uint32_t>& words, const KeyWalkSizes& sizes) {
  const OperatorOptions options;
  const auto arguments = OperatorArguments::parse(call, options);
  REQUIRE(arguments.ok());
  const auto op = prepare_attention(*arguments);
  REQUIRE_MESSAGE(op.ok(), op.error().message);
  for (const TierDevice& device : tier_devices()) {
    INFO(device.tier);
    const Tensor visited = run_poisoned(device, *op).at("visited");
    const std::vector<float> counted = *visited.to_floats();
    // The rows of a group are those of the strategy: 8 of the tiled one, one or two for each of 4
    // or 8 lanes.
    bool any = false;
    for (const uint32_t rows : {4u, 8u, 16u}) {
      bool same = true;
      double pairs = 0;
      for (size_t at = 0; at < counted.size(); ++at) {
        const auto i = static_cast<uint32_t>(at % sizes.queries);
        const auto unit = static_cast<uint32_t>(at / sizes.queries);
        const uint32_t first = i / rows * rows;
        const uint32_t place[] = {unit / sizes.heads, unit % sizes.heads, first,
                                  std::min(first + rows, sizes.queries) - 1};
        same = same && counted[at] == static_cast<float>(group_visits(params, words, sizes, place));
        pairs += counted[at];
      }
      if (same) CHECK(pairs == visited_pairs(params, words, sizes, rows));
      any = any || same;
    }
    CHECK(any);
  }
}

// Counts of queries and keys alike, with the terms of `input` and `reach` (causal, left).
void check_visits(int64_t tokens, const TensorMap& terms, ScoreTermsInput input, bool causal,
                  int64_t left, const std::string& more = "") {
  ShapedCase c{.batch = 2, .queries = tokens, .keys = tokens, .causal = causal};
  c.window_left = left;
  TensorMap inputs = make_inputs(c);
  inputs.insert(terms.begin(), terms.end());
  if (causal) input.most_distance = 0;
  if (left >= 0) input.least_distance = -left;
  const int64_t dims[] = {c.batch, c.heads, tokens, tokens};
  auto packed = pack_score_terms(input, dims);
  REQUIRE_MESSAGE(packed.ok(), packed.error().message);
  if (causal) packed->params.flags |= VKF_TERM_CAUSAL;
  if (left >= 0) packed->params.flags |= VKF_TERM_WINDOW_LEFT;
  packed->params.window_left = static_cast<int32_t>(std::max<int64_t>(left, 0));
  std::vector<uint32_t> words(packed->words.bytes.size() / 4);
  std::memcpy(words.data(), packed->words.bytes.data(), words.size() * 4);
  const auto t = static_cast<uint32_t>(tokens);
  check_visits({"attention", attributes_of(c, ", \"count_keys\": true" + more), inputs},
               packed->params, words, {2, 2, t, t});
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention caps scores softly") {
    for (double cap : {0.25, 5.0, 50.0}) {
      for (int64_t queries : {1, 65}) {
        check_attention_relative_case({.queries = queries, .keys = 67, .softcap = cap});
      }
    }
    check_attention_relative_case({.softcap = 3, .causal = true, .window_left = 4});
    check_attention_relative_case({.softcap = 3, .documents = 3});
    // So large that a tanh by exponentials would overflow, and so small that it is linear.
    check_attention_relative_case({.softcap = 1e-30});
    check_attention_relative_case({.softcap = 1e30});
  }

  TEST_CASE("attention adds products with relative keys") {
    for (int64_t reach : {0, 5, 200}) {
      for (int64_t tokens : {1, 7, 8, 9, 65}) {
        ShapedCase c{.queries = tokens, .keys = tokens, .reach = reach};
        c.per_head = tokens % 2 == 0;
        check_attention_relative_case(c);
        c.biases = true;
        check_attention_relative_case(c);
      }
    }
  }

  TEST_CASE("attention adds products of keys with relative queries") {
    for (int64_t reach : {0, 5, 200}) {
      for (int64_t tokens : {1, 8, 65}) {
        ShapedCase c{.queries = tokens, .keys = tokens, .reach = reach};
        c.queries_by_distance = true;
        c.per_head = tokens % 2 == 0;
        check_attention_relative_case(c);
        c.biases = c.values = true;
        check_attention_relative_case(c);
      }
    }
    const int64_t widths[][2] = {{7, 5}, {64, 64}};
    for (const auto& [width, value_width] : widths) {
      for (const int64_t documents : {0, 3}) {
        check_attention_relative_case({.batch = 2,
                                       .heads = 4,
                                       .queries = 37,
                                       .keys = 37,
                                       .head_width = width,
                                       .value_width = value_width,
                                       .softcap = 20,
                                       .reach = 9,
                                       .per_head = true,
                                       .queries_by_distance = true,
                                       .causal = true,
                                       .documents = documents});
      }
    }
  }

  TEST_CASE("attention adds relative products") {
    for (int64_t reach : {0, 5, 200}) {
      for (int64_t tokens : {1, 8, 65}) {
        ShapedCase c{.batch = 2, .queries = tokens, .keys = tokens, .reach = reach};
        c.products = true;
        c.per_head = tokens % 2 == 0;
        check_attention_relative_case(c);
        c.biases = c.queries_by_distance = true;
        check_attention_relative_case(c);
      }
    }
    for (const int64_t documents : {0, 3}) {
      check_attention_relative_case({.batch = 2,
                                     .heads = 4,
                                     .queries = 37,
                                     .keys = 37,
                                     .head_width = 64,
                                     .value_width = 64,
                                     .softcap = 20,
                                     .reach = 9,
                                     .per_head = true,
                                     .products = true,
                                     .causal = true,
                                     .documents = documents});
    }
  }

  TEST_CASE("attention adds relative values") {
    for (int64_t tokens : {1, 9, 66}) {
      ShapedCase c{.queries = tokens, .keys = tokens, .reach = 6, .values = true};
      check_attention_relative_case(c);
      c.per_head = c.biases = true;
      c.value_width = 5;
      c.causal = true;
      check_attention_relative_case(c);
    }
  }

  TEST_CASE("relative positions with every width, grouped heads, windows, offsets and a cap") {
    const int64_t widths[][2] = {{1, 1}, {7, 5}, {64, 80}, {256, 256}};
    for (const auto& [width, value_width] : widths) {
      check_attention_relative_case({.batch = 2,
                                     .heads = 4,
                                     .queries = 17,
                                     .keys = 37,
                                     .head_width = width,
                                     .value_width = value_width,
                                     .softcap = 20,
                                     .reach = 9,
                                     .biases = true,
                                     .causal = true,
                                     .causal_offset = 20});
    }
    ShapedCase c{.queries = 70, .keys = 150, .reach = 30, .per_head = true, .values = true};
    for (int64_t offset : {-40, 0, 80, 300}) {
      c.causal_offset = offset;
      c.causal = offset != 0;
      c.window_left = offset == 0 ? -1 : 11;
      check_attention_relative_case(c);
    }
  }

  TEST_CASE("relative positions where the keys of a tile lie apart") {
    for (bool values : {false, true}) {
      check_attention_relative_case({.batch = 2,
                                     .queries = 70,
                                     .keys = 70,
                                     .reach = 12,
                                     .biases = true,
                                     .values = values,
                                     .causal = true,
                                     .documents = 3});
    }
  }

  TEST_CASE("NaN and infinity reach the rows that see their distance and no others") {
    for (float special : {kNan, kInfinity}) {
      ShapedCase c{.queries = 30, .keys = 30, .softcap = 4, .reach = 5, .causal = true};
      TensorMap inputs = make_inputs(c);
      // The row of distance -3, which queries 3 and on see; that of 2, which none sees.
      std::memcpy(inputs.at("relative_keys").bytes.data() + 4 * (2 * 8 + 1), &special, 4);
      std::memcpy(inputs.at("relative_keys").bytes.data() + 4 * (7 * 8 + 1), &special, 4);
      check_attention_relative_case(c, inputs);
      inputs = make_inputs(c);
      std::memcpy(inputs.at("Q").bytes.data() + 4 * (9 * 8 + 2), &special, 4);
      check_attention_relative_case(c, inputs);
    }
    ShapedCase c{.queries = 30, .keys = 30, .reach = 5, .values = true, .causal = true};
    TensorMap inputs = make_inputs(c);
    std::memcpy(inputs.at("relative_values").bytes.data() + 4 * (2 * 8 + 1), &kNan, 4);
    check_attention_relative_case(c, inputs);
  }

  TEST_CASE("an item's relative attention has the same bits whatever shares the batch") {
    ShapedCase c{.batch = 3, .queries = 37, .keys = 37, .softcap = 9, .reach = 8, .biases = true};
    const TensorMap inputs = make_inputs(c);
    TensorMap alone = inputs;
    for (const char* name : {"Q", "K", "V"}) {
      Tensor& t = alone.at(name);
      const size_t item = t.bytes.size() / 3;
      t.bytes.erase(t.bytes.begin(), t.bytes.begin() + static_cast<ptrdiff_t>(2 * item));
      t.shape[0] = 1;
    }
    const auto both = prepare_attention_relative(c, inputs);
    ShapedCase one = c;
    one.batch = 1;
    const auto single = prepare_attention_relative(one, alone);
    REQUIRE(both.ok());
    REQUIRE(single.ok());
    for (const TierDevice& device : tier_devices()) {
      const Tensor all = run_poisoned(device, *both).at("output");
      const Tensor last = run_poisoned(device, *single).at("output");
      CHECK(std::equal(last.bytes.begin(), last.bytes.end(),
                       all.bytes.end() - static_cast<ptrdiff_t>(last.bytes.size())));
    }
  }

  TEST_CASE("a kernel visits the keys that the host counts") {
    for (int64_t tokens : {1, 9, 64, 145}) {
      check_visits(tokens, {}, {}, false, -1);
      check_visits(tokens, {}, {}, true, -1);
      check_visits(tokens, {}, {}, true, 5);
    }
    ScoreTermsInput documents;
    std::vector<int64_t> names;
    for (int64_t at = 0; at < 2 * 96; ++at) names.push_back(at / 29);
    documents.documents = Tensor::from_ints({2, 96}, names);
    check_visits(96, {{"documents", *documents.documents}}, documents, true, -1);
    ScoreTermsInput global;
    global.global = Tensor::zeros(DType::kU8, {2, 96});
    global.global->bytes[3] = global.global->bytes[96 + 40] = std::byte{1};
    check_visits(96, {{"global", *global.global}}, global, true, 7);
    ScoreTermsInput prefix;
    prefix.prefix = Tensor::from_ints({2}, std::vector<int64_t>{4, 50});
    check_visits(96, {{"prefix", *prefix.prefix}}, prefix, true, 7);
    ScoreTermsInput blocks;
    blocks.block_size = 4;
    blocks.block_map = Tensor::from_ints({1, 1, 24, 24}, std::vector<int64_t>(24 * 24, 1));
    check_visits(96, {{"block_map", *blocks.block_map}}, blocks, true, 9, ", \"block_size\": 4");
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("blocks that causal hides are not visited") {
    ScoreTermsInput input;
    input.block_size = 4;
    input.block_map = Tensor::from_ints({1, 1, 16, 16}, std::vector<int64_t>(256, 1));
    const int64_t dims[] = {1, 1, 64, 64};
    const KeyWalkSizes sizes{1, 1, 64, 64};
    const auto pairs = [&] {
      const auto packed = pack_score_terms(input, dims);
      REQUIRE(packed.ok());
      std::vector<uint32_t> words(packed->words.bytes.size() / 4);
      std::memcpy(words.data(), packed->words.bytes.data(), words.size() * 4);
      return *visited_pairs(packed->params, words, sizes, 4);
    };
    CHECK(pairs() == 64 * 64);
    input.most_distance = 0;
    CHECK(pairs() == 16 * 17 / 2 * 16);
    input.least_distance = -3;  // the block before, of which three keys are seen
    CHECK(pairs() == (1 + 15 * 2) * 16);
    // A prefix is seen whatever causal says.
    input.prefix = Tensor::from_ints({1}, std::vector<int64_t>{64});
    CHECK(pairs() == 64 * 64);
  }

  TEST_CASE("the cost of attention is that of the pairs it visits") {
    const auto flops = [](const ShapedCase& c) {
      const auto op = prepare_attention_relative(c, make_inputs(c));
      REQUIRE(op.ok());
      const auto plan = make_plan(op->graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
      REQUIRE(plan.ok());
      return plan->dispatches.at(0).flops;
    };
    ShapedCase c{.heads = 1, .kv_heads = 1, .queries = 64, .keys = 64};
    CHECK(flops(c) == 2.0 * 64 * 64 * 16);
    c.causal = true;
    CHECK(flops(c) == 2.0 * 8 * (8 + 16 + 24 + 32 + 40 + 48 + 56 + 64) * 16);
    c.reach = 3;
    c.values = true;
    CHECK(flops(c) == 2.0 * 8 * (8 + 16 + 24 + 32 + 40 + 48 + 56 + 64) * 32);
    c.queries_by_distance = true;
    CHECK(flops(c) == 2.0 * 8 * (8 + 16 + 24 + 32 + 40 + 48 + 56 + 64) * 40);
  }

  TEST_CASE("attention says what is wrong with a cap or relative positions") {
    const ShapedCase c{.reach = 3};
    const TensorMap good = make_inputs(c);
    CHECK(message(c, good) == "accepted");
    for (const char* cap : {"0", "-2", "1e-42", "1e60"}) {
      const std::string text = message(c, good, ", \"softcap\": " + std::string(cap));
      CHECK_MESSAGE(text.find("softcap") != std::string::npos, text);
    }
    const auto with = [&](const char* name, Shape shape) {
      TensorMap inputs = good;
      inputs[name] = Tensor::zeros(DType::kF32, std::move(shape));
      return message(c, inputs);
    };
    CHECK(with("relative_keys", {6, 8}).find("odd number of distances") != std::string::npos);
    CHECK(with("relative_keys", {7, 9}).find("(2R + 1, 8)") != std::string::npos);
    CHECK(with("relative_keys", {7, 3, 8}).find("(7, 3, 8)") != std::string::npos);
    CHECK(with("relative_queries", {9, 8}).find("the same shape") != std::string::npos);
    CHECK(with("relative_queries", {7, 9}).find("(2R + 1, 8)") != std::string::npos);
    CHECK(with("relative_products", {1, 2, 20, 8}).find("(B, H, S, 2R + 1)") != std::string::npos);
    CHECK(with("relative_values", {9, 8}).find("same distances") != std::string::npos);
    CHECK(with("relative_values", {7, 2, 8}).find("both or neither") != std::string::npos);
    CHECK(with("content_bias", {8}).find("(H, E)") != std::string::npos);
    TensorMap alone = good;
    alone.erase("relative_keys");
    alone["position_bias"] = Tensor::zeros(DType::kF32, {2, 8});
    CHECK(message(c, alone).find("without relative_keys") != std::string::npos);
    AttentionAttrs attrs;
    for (float cap : {-1.0f, kNan, kInfinity, 1e-45f}) {
      attrs.softcap = cap;
      CHECK_FALSE(check_attention_numbers(OpId::k_attention, attrs).ok());
    }
    attrs = {.head_width = 4, .value_width = 4};
    const TensorDesc kv{"kv", DType::kF32, {30}};
    attrs.relative = {.kinds = VKF_RELATIVE_KEYS, .offset = 10, .reach = 2};
    CHECK(check_relative(OpId::k_attention, kv, attrs).ok());
    attrs.relative.offset = 11;
    CHECK(check_relative(OpId::k_attention, kv, attrs).error().message.find("31") !=
          std::string::npos);
    attrs.relative = {.kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_QUERIES, .reach = 3};
    CHECK_FALSE(check_relative(OpId::k_attention, kv, attrs).ok());
    attrs.relative = {.kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_PRODUCTS, .reach = 3};
    CHECK_FALSE(check_relative(OpId::k_attention, kv, attrs).ok());
    attrs.relative.kinds |= VKF_RELATIVE_VALUES;
    CHECK(check_relative(OpId::k_attention, kv, attrs).error().message.find("use one") !=
          std::string::npos);
    attrs.relative = {.kinds = VKF_RELATIVE_VALUES, .offset = 0, .reach = 0};
    CHECK_FALSE(check_relative(OpId::k_attention, kv, attrs).ok());
    attrs.relative = {.kinds = VKF_RELATIVE_KEYS, .offset = 0, .reach = ~0u};
    CHECK_FALSE(check_relative(OpId::k_attention, kv, attrs).ok());
  }
}

}  // namespace vkformer::testing
