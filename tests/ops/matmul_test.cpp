#include "ops/matmul.h"

#include "reference/matmul.h"
#include "support/matrix_rounding.h"
#include "support/operator_check.h"
#include "weights/pack_matrix.h"

namespace vkformer::testing {
namespace {

// ---- two tensors of the graph ----

struct MatmulCase {
  Array a;
  Array b;
  Array c;  // empty: none
  MatmulAttrs attrs;
};

PreparedOperator prepare_matmul(const MatmulCase& c) {
  PreparedOperator op;
  const TensorId a = op.bind("a", reference::to_tensor(c.a));
  const TensorId b = op.bind("b", reference::to_tensor(c.b));
  const TensorId addend = c.c.data.empty() ? kNoTensor : op.bind("c", reference::to_tensor(c.c));
  const auto y = add_matmul(op.graph, a, b, addend, c.attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_matmul(const MatmulCase& c) {
  reference::MatmulOptions options;
  options.trans_a = c.attrs.trans_a;
  options.trans_b = c.attrs.trans_b;
  options.alpha = c.attrs.alpha;
  options.beta = c.attrs.beta;
  if (c.attrs.activation != ActivationKind::kNone) {
    options.activation =
        reference::activation_from_name(activation_name(c.attrs.activation)).value();
  }
  if (!c.c.data.empty()) options.c = &c.c;
  return reference::matmul(c.a, c.b, options).value();
}

void check(const TierDevice& device, const MatmulCase& c) {
  CAPTURE(device.tier);
  CAPTURE(shape_text(c.a.shape));
  CAPTURE(shape_text(c.b.shape));
  const int64_t k = c.attrs.trans_a ? c.a.dim(-2) : c.a.dim(-1);
  check_close(run_poisoned(device, prepare_matmul(c)).at("y"), expected_matmul(c),
              tolerance_for(DType::kF32, k));
}

// Random operands whose products are of the order of 1.
MatmulCase make_matmul_case(Shape a, Shape b, uint32_t seed, MatmulAttrs attrs = {}) {
  const int64_t k = a[a.size() - (attrs.trans_a ? 2 : 1)];
  return {random_array(a, seed, 1 / std::sqrt(static_cast<double>(k))),
          random_array(b, seed + 1),
          {},
          attrs};
}

// ---- a packed weight ----

struct LinearCase {
  Array x;  // (..., K)
  int64_t n = 1;
  MatrixFormat format = MatrixFormat::kF32;
  bool bias = false;
  bool residual = false;
  ActivationKind activation = ActivationKind::kNone;
};

struct PreparedLinear {
  PreparedOperator op;
  Array expected;
};

PreparedLinear prepare_linear(const LinearCase& c, uint32_t seed) {
  const int64_t k = c.x.dim(-1);
  Array w = random_array({k, c.n}, seed, 1 / std::sqrt(static_cast<double>(k)));
  const std::vector<float> values(w.data.begin(), w.data.end());
  w = round_to_format(w, c.format);
  const Array bias = random_array({c.n}, seed + 1);
  Shape y_shape = c.x.shape;
  y_shape.back() = c.n;
  const Array residual = random_array(y_shape, seed + 2);
  std::vector<float> bias_values(bias.data.begin(), bias.data.end());
  if (!c.bias) bias_values.clear();
  const auto packed = pack_matrix(values, {c.n, k, MatrixOrder::kInOut}, bias_values, c.format);
  REQUIRE(packed.ok());
  PreparedLinear prepared;
  PreparedOperator& op = prepared.op;
  const auto words = static_cast<int64_t>(packed->words.size());
  const LinearWeight weight{.tensor = op.bind("weight", word_tensor(packed->words, {words})),
                            .n = static_cast<uint32_t>(c.n),
                            .k = static_cast<uint32_t>(k),
                            .bias_offset = packed->bias_offset,
                            .format = c.format};
  const TensorId x = op.bind("x", reference::to_tensor(c.x));
  LinearAttrs attrs{.activation = c.activation};
  if (c.residual) attrs.residual = op.bind("residual", reference::to_tensor(residual));
  const auto y = add_linear(op.graph, x, weight, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  reference::MatmulOptions options;
  if (c.bias) options.bias = &bias;
  if (c.residual) options.residual = &residual;
  if (c.activation == ActivationKind::kRelu) options.activation = reference::ActivationKind::kRelu;
  Array rows = c.x;
  rows.shape = {rows.size() / k, k};
  Array flat_residual = residual;
  flat_residual.shape = {rows.shape[0], c.n};
  if (c.residual) options.residual = &flat_residual;
  prepared.expected = reference::matmul(rows, w, options).value();
  prepared.expected.shape = y_shape;
  return prepared;
}

LinearWeight weight_desc(Graph& graph, uint32_t k, uint32_t n) {
  const auto elements = static_cast<int64_t>(packed_elements(n, k));
  const TensorId tensor = graph.add_external("weight", DType::kF32, {elements});
  return {.tensor = tensor, .n = n, .k = k};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("linear over slots, cut between panels, gives the bits of the whole") {
    for (const TierDevice& device : tier_devices()) {
      for (MatrixFormat format : kMatrixFormats) {
        LinearCase c{.x = random_array({7, 37}, 19), .n = 200, .format = format, .bias = true};
        c.residual = true;
        PreparedLinear linear = prepare_linear(c, 23);
        linear.op.graph.set_step(7);
        GraphRunOptions options;
        options.poison = GraphRunOptions::Poison::kOn;
        options.caps = device.device->caps();
        if (device.wide) options.caps->device_class = DeviceClass::kDiscrete;
        CAPTURE(device.tier);
        TensorMap whole;
        for (const auto& [limit, dispatches] : {std::pair{1e9, 1}, {70000.0, 2}, {1.0, 4}}) {
          options.caps->max_dispatch_flops = limit;
          const auto ran = run_graph(device.device, linear.op.graph, linear.op.inputs, options);
          REQUIRE_MESSAGE(ran.ok(), ran.error().message);
          CHECK(ran->dispatches == dispatches);
          if (dispatches == 1) whole = ran->outputs;
          CHECK(ran->outputs.at("y").bytes == whole.at("y").bytes);
        }
        check_close(whole.at("y"), linear.expected, tolerance_for(DType::kF32, 37));
      }
    }
  }

  TEST_CASE("linear writes a result beyond one binding in windows of rows") {
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      LinearCase c{.x = random_array({200, 37}, 19), .n = 200, .bias = true};
      const PreparedLinear linear = prepare_linear(c, 23);
      GraphRunOptions options;
      options.poison = GraphRunOptions::Poison::kOn;
      options.caps = device.device->caps();
      if (device.wide) options.caps->device_class = DeviceClass::kDiscrete;
      options.caps->limits.max_storage_range = 70 * 200 * 4;  // 64 whole rows
      const auto ran = run_graph(device.device, linear.op.graph, linear.op.inputs, options);
      REQUIRE_MESSAGE(ran.ok(), ran.error().message);
      CHECK(ran->dispatches >= 4);
      check_close(ran->outputs.at("y"), linear.expected, tolerance_for(DType::kF32, 37));
    }
  }

  TEST_CASE("matmul passes NaN and infinity on, also from B and C") {
    for (const TierDevice& device : tier_devices()) {
      MatmulCase c = make_matmul_case({2, 5, 7}, {2, 7, 9}, 37);
      c.c = random_array({5, 9}, 41);
      c.a[3] = kNan;
      c.b[2 * 9 + 4] = kInfinity;
      c.c[40] = -kInfinity;
      check(device, c);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("matmul refuses inputs that do not fit") {
    const auto refused = [](Shape a, Shape b, const char* part) {
      check_error(check_matmul(floats_desc(a), floats_desc(b), nullptr, {}), "matmul", part);
    };
    refused({4}, {4, 5}, "(4)");
    refused({3, 4}, {5, 6}, "K = 4");
    refused({2, 3, 4}, {3, 4, 5}, "do not broadcast");
    TensorDesc integers = floats_desc({4, 5});
    integers.dtype = DType::kI64;
    check_error(check_matmul(floats_desc({3, 4}), integers, nullptr, {}), "matmul", "I64");
    for (const Shape& shape : {Shape{4}, Shape{3, 1}, Shape{1, 3, 5}, Shape{}}) {
      const TensorDesc c = floats_desc(shape);
      check_error(check_matmul(floats_desc({3, 4}), floats_desc({4, 5}), &c, {}), "matmul",
                  shape_text(shape));
    }
  }

  TEST_CASE("linear refuses rows and residuals that do not fit its weight") {
    Graph graph;
    const LinearWeight weight = weight_desc(graph, 4, 5);
    check_error(check_linear(floats_desc({2, 3}), weight), "matmul", "K = 4");
    check_error(check_linear(floats_desc({}), weight), "matmul", "()");
    const TensorId x = graph.add_external("x", DType::kF32, {2, 4});
    check_error(add_linear(graph, x, weight, {.residual = x}), "combine", "(2, 4)");
  }

  TEST_CASE("matmul plans one dispatch a run of equal batch strides") {
    const auto dispatches = [](Shape a, Shape b) {
      const PreparedOperator op = prepare_matmul(make_matmul_case(std::move(a), std::move(b), 43));
      return plan_with_kernel(op.graph, Tier::kBaseline, "matmul_tiled__f32_f32_f32")
          .dispatches.size();
    };
    CHECK(dispatches({9, 4}, {4, 5}) == 1);
    CHECK(dispatches({3, 9, 4}, {3, 4, 5}) == 1);
    CHECK(dispatches({2, 3, 9, 4}, {3, 4, 5}) == 2);
  }

  TEST_CASE("linear plans the strategy of its rows and the variant of its weight") {
    for (int64_t rows : {8, 9}) {
      Graph graph;
      LinearWeight weight = weight_desc(graph, 4, 5);
      weight.format = rows == 9 ? MatrixFormat::kF16 : MatrixFormat::kF32;
      const TensorId x = graph.add_external("x", DType::kF32, {rows, 4});
      REQUIRE(add_linear(graph, x, weight, {}).ok());
      plan_with_kernel(graph, Tier::kBaseline,
                       rows == 9 ? "matmul_tiled__f32_f16_f32" : "matmul_rows__f32_f32_f32");
    }
  }

  TEST_CASE("linear over slots is sized by what is live") {
    Graph graph;
    graph.set_step(40);
    const LinearWeight weight = weight_desc(graph, 4, 5);
    const TensorId x = graph.add_external("x", DType::kF32, {40, 4});
    REQUIRE(add_linear(graph, x, weight, {}).ok());
    const Plan plan = plan_with_kernel(graph, Tier::kBaseline, "matmul_tiled__f32_f32_f32");
    CHECK(plan.dispatches[0].live_axis == 1);
    CHECK(plan.dispatches[0].slots_per_group == 32);
  }

  TEST_CASE("matmul never shares memory between what it reads and writes") {
    PreparedOperator op;
    const LinearWeight weight = weight_desc(op.graph, 64, 64);
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 4; ++i) x = add_linear(op.graph, x, weight, {.residual = x}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "matmul_rows__f32_f32_f32");
    check_no_aliasing(plan);
    CHECK(plan.barriers.size() == 3);
  }
}

}  // namespace vkformer::testing
