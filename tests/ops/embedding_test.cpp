#include "ops/embedding.h"

#include "ops/layer_norm.h"
#include "params/decode_state.h"
#include "reference/embedding.h"
#include "reference/layer_norm.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct EmbeddingCase {
  Array table;      // (V, D)
  Array positions;  // (P, D), or empty
  Shape ids_shape;
  std::vector<uint32_t> ids;
  float scale = 1;
  uint32_t offset = 0;
  bool half = false;
  bool transposed = false;  // stored (D, V)
  Array gain, bias;         // (D) of a norm after the sum, or empty
};

void add_norm(EmbeddingCase& c) {
  c.gain = random_array({c.table.dim(1)}, 71);
  c.bias = random_array({c.table.dim(1)}, 72);
}

EmbeddingCase make_embedding_case(int64_t vocabulary, int64_t width, const Shape& ids_shape,
                                  uint32_t seed) {
  EmbeddingCase c{random_array({vocabulary, width}, seed), {}, ids_shape, {}};
  std::mt19937 engine(seed);
  std::uniform_int_distribution<uint32_t> id(0, static_cast<uint32_t>(vocabulary - 1));
  c.ids.resize(static_cast<size_t>(element_count(ids_shape)));
  for (uint32_t& value : c.ids) value = id(engine);
  return c;
}

Array transpose(const Array& a) {
  Array t = reference::filled({a.dim(1), a.dim(0)}, 0.0);
  for (int64_t i = 0; i < a.dim(0); ++i) {
    for (int64_t j = 0; j < a.dim(1); ++j) t[j * a.dim(0) + i] = a[i * a.dim(1) + j];
  }
  return t;
}

EmbeddingAttrs attrs_of_case(const EmbeddingCase& c) {
  EmbeddingAttrs attrs;
  attrs.vocabulary = static_cast<uint32_t>(c.table.dim(0));
  attrs.width = static_cast<uint32_t>(c.table.dim(1));
  attrs.scale = c.scale;
  attrs.position_offset = c.offset;
  if (c.transposed) {
    attrs.row_stride = 1;
    attrs.col_stride = attrs.vocabulary;
  }
  return attrs;
}

// With a state, positions are its position, for every row.
PreparedOperator prepare_embedding(const EmbeddingCase& c, const DecodeState* state) {
  const Array stored = c.transposed ? transpose(c.table) : c.table;
  PreparedOperator op;
  EmbeddingInputs inputs;
  inputs.ids = op.bind("ids", word_tensor(c.ids, c.ids_shape));
  inputs.table = op.bind("table", c.half ? half_tensor(stored) : reference::to_tensor(stored));
  if (!c.positions.data.empty()) {
    inputs.positions = op.bind("positions", reference::to_tensor(c.positions));
  }
  if (state != nullptr) {
    std::vector<uint32_t> words(VKF_STATE_WORDS + 4 * VKF_SLOT_QUADS, 0u);
    std::memcpy(words.data(), state, sizeof(DecodeState));
    inputs.state = op.bind("state", word_tensor(words, {static_cast<int64_t>(words.size())}));
  }
  auto y = add_embedding(op.graph, inputs, attrs_of_case(c));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  if (!c.gain.data.empty()) {
    const TensorId gain_bias =
        op.bind("gain_bias", reference::to_tensor(conformance::stacked_rows(c.gain, c.bias)));
    y = add_layer_norm(op.graph, {.x = *y, .gain_bias = gain_bias}, {.epsilon = 1e-5f});
    REQUIRE_MESSAGE(y.ok(), y.error().message);
  }
  op.name_output(*y, "y");
  return op;
}

Array expected_embedding(const EmbeddingCase& c, const DecodeState* state) {
  Array ids{c.ids_shape, std::vector<double>(c.ids.begin(), c.ids.end())};
  const Array table = c.half ? reference::round_to_f16(c.table) : c.table;
  Array position_ids = reference::filled(c.ids_shape, 0.0);
  reference::EmbeddingOptions options;
  options.scale = c.scale;
  options.position_offset = c.offset;
  if (!c.positions.data.empty()) options.position_table = &c.positions;
  if (state != nullptr) {
    for (double& p : position_ids.data) p = state->position + c.offset;
    options.position_ids = &position_ids;
  }
  const Array y = reference::embedding(table, ids, options).value();
  if (c.gain.data.empty()) return y;
  return reference::layer_norm(y, {.gain = &c.gain, .bias = &c.bias}).value();
}

void check_embedding_case(const EmbeddingCase& c) {
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_embedding(c, nullptr)).at("y"),
                expected_embedding(c, nullptr),
                tolerance_for(DType::kF32, c.gain.data.empty() ? 1 : c.table.dim(1)));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("embedding agrees with the reference for every table layout and width") {
    for (int64_t width : conformance::kRowWidths) {
      EmbeddingCase c = make_embedding_case(37, width, {3, 11}, static_cast<uint32_t>(width));
      check_embedding_case(c);
      c.positions = random_array({20, width}, 2);
      c.scale = 5.5f;
      c.offset = 2;
      for (bool half : {false, true}) {
        for (bool transposed : {false, true}) {
          c.half = half;
          c.transposed = transposed;
          check_embedding_case(c);
        }
      }
    }
  }

  TEST_CASE("embedding reads positions and types from planes of its ids") {
    // 5 positions and 3 types in one table; the last id has no row, as have a position and a type.
    const Array table = random_array({11, 33}, 5);
    const Array extra = random_array({8, 33}, 6);
    const std::vector<uint32_t> ids = {0, 10, 4, 4, 3, 11, 1, 2};
    const std::vector<uint32_t> positions = {2, 0, 1, 3, 4, 0, 3, ~0u};
    const std::vector<uint32_t> types = {0, 1, 2, 0, 1, 0, 3, 0};
    std::vector<uint32_t> words = ids;
    words.insert(words.end(), positions.begin(), positions.end());
    words.insert(words.end(), types.begin(), types.end());
    PreparedOperator op;
    EmbeddingInputs inputs;
    inputs.ids = op.bind("ids", word_tensor(words, {3, 2, 4}));
    inputs.table = op.bind("table", reference::to_tensor(table));
    inputs.positions = op.bind("positions", reference::to_tensor(extra));
    EmbeddingAttrs attrs;
    attrs.vocabulary = 11;
    attrs.width = 33;
    attrs.position_offset = 1;
    attrs.from = EmbeddingAttrs::Positions::kPlane;
    attrs.types = 3;
    const auto y = add_embedding(op.graph, inputs, attrs);
    REQUIRE_MESSAGE(y.ok(), y.error().message);
    CHECK(op.graph.tensor(*y).shape == Shape{2, 4, 33});
    op.name_output(*y, "y");
    Array wanted = reference::filled({2, 4, 33}, std::numeric_limits<double>::quiet_NaN());
    for (size_t r : {0u, 1u, 2u, 3u, 7u}) {
      const uint32_t row = positions[r] + 1u;
      for (int64_t d = 0; d < 33; ++d) {
        const auto at = static_cast<int64_t>(r) * 33 + d;
        wanted[at] = table[ids[r] * 33 + d] + extra[row * 33 + d] + extra[(5 + types[r]) * 33 + d];
      }
    }
    for (const TierDevice& device : tier_devices()) {
      check_close(run_poisoned(device, op).at("y"), wanted, tolerance_for(DType::kF32, 3));
    }
  }

  TEST_CASE("embedding adds types alone where there are no positions") {
    const Array table = random_array({11, 33}, 5);
    const Array extra = random_array({3, 33}, 6);
    const std::vector<uint32_t> ids = {0, 10, 4, 4, 3, 11, 1, 2};
    const std::vector<uint32_t> types = {0, 1, 2, 0, 1, 0, 3, 0};
    std::vector<uint32_t> words = ids;
    words.insert(words.end(), types.begin(), types.end());
    for (const bool normed : {false, true}) {
      PreparedOperator op;
      EmbeddingInputs inputs;
      inputs.ids = op.bind("ids", word_tensor(words, {2, 2, 4}));
      inputs.table = op.bind("table", reference::to_tensor(table));
      inputs.positions = op.bind("types", reference::to_tensor(extra));
      auto y = add_embedding(
          op.graph, inputs,
          {.vocabulary = 11, .width = 33, .from = EmbeddingAttrs::Positions::kNone, .types = 3});
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      Array wanted = reference::filled({2, 4, 33}, std::numeric_limits<double>::quiet_NaN());
      for (size_t r : {0u, 1u, 2u, 3u, 4u, 7u}) {
        for (int64_t d = 0; d < 33; ++d) {
          wanted[static_cast<int64_t>(r) * 33 + d] =
              table[ids[r] * 33 + d] + extra[types[r] * 33 + d];
        }
      }
      if (normed) {
        const Array gain = random_array({33}, 7), bias = random_array({33}, 8);
        const TensorId gain_bias =
            op.bind("gain_bias", reference::to_tensor(conformance::stacked_rows(gain, bias)));
        y = add_layer_norm(op.graph, {.x = *y, .gain_bias = gain_bias}, {.epsilon = 1e-5f});
        REQUIRE_MESSAGE(y.ok(), y.error().message);
        wanted = reference::layer_norm(wanted, {.gain = &gain, .bias = &bias}).value();
      }
      op.name_output(*y, "y");
      for (const TierDevice& device : tier_devices()) {
        check_close(run_poisoned(device, op).at("y"), wanted,
                    tolerance_for(DType::kF32, normed ? 33 : 3));
      }
    }
  }

  TEST_CASE("embedding takes the position of a decoding step from its state") {
    EmbeddingCase c = make_embedding_case(37, 33, {5, 1}, 4);
    c.positions = random_array({20, 33}, 2);
    c.offset = 2;
    DecodeState state{};
    state.position = 13;
    for (const TierDevice& device : tier_devices()) {
      for (bool half : {false, true}) {
        c.half = half;
        check_close(run_poisoned(device, prepare_embedding(c, &state)).at("y"),
                    expected_embedding(c, &state), tolerance_for(DType::kF32, 1));
      }
    }
  }

  TEST_CASE("embedding with a norm agrees with both apart, in passes and steps, up to any width") {
    DecodeState state{};
    state.position = 7;
    for (const int64_t width : {1, 2, 5, 63, 64, 65, 768, 2048, 2049}) {
      EmbeddingCase c = make_embedding_case(19, width, {2, 5}, static_cast<uint32_t>(width));
      c.positions = random_array({9, width}, 2);
      c.scale = 1.5f;
      c.offset = 1;
      add_norm(c);
      for (const bool half : {false, true}) {
        c.half = half;
        check_embedding_case(c);
        for (const TierDevice& device : tier_devices()) {
          check_close(run_poisoned(device, prepare_embedding(c, &state)).at("y"),
                      expected_embedding(c, &state), tolerance_for(DType::kF32, width));
        }
      }
    }
  }

  TEST_CASE("embedding with a norm gives NaN rows where it would without, and no others") {
    EmbeddingCase c = make_embedding_case(5, 70, {6}, 1);
    c.positions = random_array({5, 70}, 2);
    c.ids = {0, 4, 5, 0xffffffffu, 1, 1};
    c.table[4 * 70 + 69] = kInfinity;
    add_norm(c);
    for (const TierDevice& device : tier_devices()) {
      const auto y =
          run_poisoned(device, prepare_embedding(c, nullptr)).at("y").to_floats().value();
      for (size_t row = 0; row < 6; ++row) {
        const bool finite = row == 0 || row == 4;
        for (size_t d = 0; d < 70; ++d) CHECK(std::isnan(y[row * 70 + d]) == !finite);
      }
    }
  }

  TEST_CASE("embedding gives NaN rows for ids and positions without a row") {
    for (const TierDevice& device : tier_devices()) {
      EmbeddingCase c = make_embedding_case(5, 7, {6}, 1);
      c.positions = random_array({5, 7}, 2);
      c.ids = {0, 4, 5, 0xffffffffu, 1, 1};
      const auto y =
          run_poisoned(device, prepare_embedding(c, nullptr)).at("y").to_floats().value();
      for (size_t row = 0; row < 6; ++row) {
        const bool exists = row == 0 || row == 1 || row == 4;
        for (size_t d = 0; d < 7; ++d) CHECK(std::isnan(y[row * 7 + d]) == !exists);
      }
    }
  }

  TEST_CASE("embedding passes NaN and infinity of its table on") {
    EmbeddingCase c = make_embedding_case(2, 9, {2}, 1);
    c.ids = {0, 1};
    c.table[3] = kNan;
    c.table[9] = kInfinity;
    check_embedding_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("embedding refuses inputs that do not fit") {
    const TensorDesc ids{"ids", DType::kU32, {2, 3}};
    EmbeddingAttrs attrs;
    attrs.vocabulary = 10;
    attrs.width = 4;
    CHECK(check_embedding(ids, floats_desc({10, 4}), attrs).ok());
    check_error(check_embedding(floats_desc({2, 3}), floats_desc({10, 4}), attrs), "embedding",
                "U32");
    check_error(check_embedding(ids, {"t", DType::kI64, {10, 4}}, attrs), "embedding", "I64");
    check_error(check_embedding(ids, floats_desc({9, 4}), attrs), "embedding", "36 elements");
    check_error(check_embedding_positions(floats_desc({8, 5}), attrs), "embedding", "(8, 5)");
    attrs.row_stride = 1;
    attrs.col_stride = 11;
    check_error(check_embedding(ids, floats_desc({4, 10}), attrs), "embedding", "(1, 11)");
    attrs.vocabulary = 0;
    check_error(check_embedding(ids, floats_desc({4, 10}), attrs), "embedding", "0 rows");
  }

  TEST_CASE("embedding refuses a decoding state that is too small or not needed") {
    Graph graph;
    EmbeddingInputs inputs;
    inputs.ids = graph.add_external("ids", DType::kU32, {4});
    inputs.table = graph.add_external("table", DType::kF32, {5, 3});
    inputs.state = graph.add_external("state", DType::kU32, {4});
    EmbeddingAttrs attrs;
    attrs.vocabulary = 5;
    attrs.width = 3;
    check_error(add_embedding(graph, inputs, attrs), "embedding", "without a position table");
    inputs.positions = graph.add_external("positions", DType::kF32, {8, 3});
    check_error(add_embedding(graph, inputs, attrs), "embedding", "16 bytes");
    attrs.from = EmbeddingAttrs::Positions::kNone;
    check_error(add_embedding(graph, inputs, attrs), "embedding", "must hold types");
    inputs.ids = graph.add_external("planes", DType::kU32, {2, 4});
    inputs.state = kNoTensor;
    attrs.types = 3;
    check_error(add_embedding(graph, inputs, attrs), "embedding", "8 rows");
  }

  TEST_CASE(
      "an embedding is fused with its norm unless it is too wide or its kernel gives wrong "
      "results") {
    EmbeddingCase c = make_embedding_case(5, 2048, {4}, 1);
    add_norm(c);
    const DecodeState state{};
    plan_with_kernel(prepare_embedding(c, nullptr).graph, Tier::kBaseline,
                     "embedding_normed__u32_f32_f32");
    c.positions = random_array({5, 2048}, 2);
    const Plan step = plan_with_kernel(prepare_embedding(c, &state).graph, Tier::kSubgroup,
                                       "embedding_normed_step__u32_f32_f32");
    CHECK(step.dispatches.size() == 1);
    CHECK(step.dispatches[0].bindings.size() == 6);
    check_no_aliasing(step);
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    const auto kernels = [&](const Graph& graph) {
      const auto plan = make_plan(graph, caps, Precision::kF32);
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      check_no_aliasing(*plan);
      std::vector<KernelId> list;
      for (const Dispatch& d : plan->dispatches) list.push_back(d.kernel);
      return list;
    };
    const std::vector<KernelId> apart = {KernelId::embedding_row__u32_f32_f32,
                                         KernelId::layer_norm_row__f32_f32_f32_subgroup};
    caps.demoted = {KernelId::embedding_normed__u32_f32_f32};
    CHECK(kernels(prepare_embedding(c, nullptr).graph) == apart);
    caps.demoted.clear();
    EmbeddingCase wide = make_embedding_case(5, 2049, {4}, 1);
    add_norm(wide);
    CHECK(kernels(prepare_embedding(wide, nullptr).graph) == apart);
  }

  TEST_CASE("embedding plans the kernel of its table and step, without aliasing") {
    EmbeddingCase c = make_embedding_case(5, 8, {4}, 1);
    c.positions = random_array({5, 8}, 2);
    const DecodeState state{};
    plan_with_kernel(prepare_embedding(c, nullptr).graph, Tier::kBaseline,
                     "embedding_row__u32_f32_f32");
    const Plan step = plan_with_kernel(prepare_embedding(c, &state).graph, Tier::kBaseline,
                                       "embedding_step__u32_f32_f32");
    CHECK(step.dispatches[0].bindings.size() == 5);
    check_no_aliasing(step);
    c.half = true;
    plan_with_kernel(prepare_embedding(c, nullptr).graph, Tier::kSubgroup,
                     "embedding_row__u32_f16_f32");
    plan_with_kernel(prepare_embedding(c, &state).graph, Tier::kSubgroup,
                     "embedding_step__u32_f16_f32");
  }
}

}  // namespace vkformer::testing
