// Gated linear layers: columns of the product in pairs of one of the gate and one of the up
// projection.
#include "ops/matmul.h"
#include "reference/gated_activation.h"
#include "reference/matmul.h"
#include "support/operator_check.h"
#include "support/packed_linear.h"

namespace vkformer::testing {
namespace {

struct MatmulGateCase {
  int64_t rows = 1, n = 2, k = 1;
  MatrixFormat format = MatrixFormat::kF32;
  bool bias = false;
  ActivationKind kind = ActivationKind::kSilu;
};

struct Prepared {
  PreparedOperator op;
  Array expected;  // (rows, N / 2)
};

// The unfused way: a product, its columns sorted into two halves, the gate.
Array expected_matmul_gate(const MatmulGateCase& c, const Array& x, const Array& w,
                           const Array& bias) {
  reference::MatmulOptions options;
  if (c.bias) options.bias = &bias;
  const Array product = reference::matmul(x, w, options).value();
  Array halves = product;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t i = 0; i < c.n; ++i) {
      halves[row * c.n + i % 2 * (c.n / 2) + i / 2] = product[row * c.n + i];
    }
  }
  const auto kind = reference::activation_from_name(activation_name(c.kind));
  return reference::gated_activation(halves, kind.value()).value();
}

Prepared prepare_matmul_gate(const MatmulGateCase& c, Array x) {
  const auto seed = static_cast<uint32_t>(c.n + c.k);
  const PackedLinear linear =
      random_linear(c.k, c.n, c.format, c.bias ? StoredBias::kOn : StoredBias::kOff, seed);
  Prepared p;
  LinearWeight weight = linear.weight;
  weight.tensor = p.op.bind("weight", word_tensor(linear.words, linear.shape()));
  const LinearAttrs attrs{.activation = c.kind, .gate = GatePairs::kPairs};
  const auto y = add_linear(p.op.graph, p.op.bind("x", reference::to_tensor(x)), weight, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  p.op.name_output(*y, "y");
  p.expected = expected_matmul_gate(c, x, linear.w, linear.bias);
  return p;
}

void check_matmul_gate_case(const TierDevice& device, const MatmulGateCase& c, const Array& x) {
  CAPTURE(device.tier);
  CAPTURE(c.rows);
  CAPTURE(c.n);
  const Prepared p = prepare_matmul_gate(c, x);
  check_close(run_poisoned(device, p.op).at("y"), p.expected, tolerance_for(DType::kF32, c.k));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a gated linear layer agrees with a product and a gate apart") {
    for (const TierDevice& device : tier_devices()) {
      for (MatrixFormat format : kMatrixFormats) {
        for (int64_t rows : {1, 3, 8, 33}) {
          for (int64_t n : {2, 6, 62, 64, 66, 130}) {
            if (is_gguf_format(format) && n != 66) continue;
            MatmulGateCase c{.rows = rows, .n = n, .k = 37, .format = format};
            c.bias = n % 4 == 2;
            check_matmul_gate_case(device, c, random_array({rows, c.k}, 19));
          }
        }
      }
      for (ActivationKind kind : {ActivationKind::kGelu, ActivationKind::kSigmoid,
                                  ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
        const MatmulGateCase c{.rows = 9, .n = 18, .k = 5, .bias = true, .kind = kind};
        check_matmul_gate_case(device, c, random_array({c.rows, c.k}, 23));
      }
      for (int64_t rows : {17, 34}) {
        const MatmulGateCase real{.rows = rows, .n = 2 * 688, .k = 256, .bias = rows == 34};
        check_matmul_gate_case(device, real, random_array({real.rows, real.k}, 29));
      }
    }
  }

  TEST_CASE("a gate stays apart from a product that is an output, and agrees") {
    for (const TierDevice& device : tier_devices()) {
      const MatmulGateCase c{
          .rows = 9, .n = 1030, .k = 5, .bias = true, .kind = ActivationKind::kGelu};
      const Array x = random_array({c.rows, c.k}, 37);
      const PackedLinear linear = random_linear(c.k, c.n, c.format, StoredBias::kOn, 41);
      PreparedOperator op;
      LinearWeight weight = linear.weight;
      weight.tensor = op.bind("weight", word_tensor(linear.words, linear.shape()));
      const TensorId product =
          add_linear(op.graph, op.bind("x", reference::to_tensor(x)), weight, {}).value();
      op.name_output(product, "product");
      const auto y = add_gated_activation(op.graph, product, {c.kind, GatePairs::kPairs});
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      op.name_output(*y, "y");
      const TensorMap outputs = run_poisoned(device, op);
      check_close(outputs.at("y"), expected_matmul_gate(c, x, linear.w, linear.bias),
                  tolerance_for(DType::kF32, c.k));
      reference::MatmulOptions options{.bias = &linear.bias};
      check_close(outputs.at("product"), reference::matmul(x, linear.w, options).value(),
                  tolerance_for(DType::kF32, c.k));
    }
  }

  TEST_CASE("a gated linear layer passes NaN and infinity on in their rows only") {
    for (const TierDevice& device : tier_devices()) {
      const MatmulGateCase c{.rows = 11, .n = 70, .k = 13, .bias = true};
      Array x = random_array({c.rows, c.k}, 31);
      x[2 * 13 + 5] = kNan;
      x[9 * 13] = kInfinity;
      check_matmul_gate_case(device, c, x);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("a gated linear layer refuses odd columns") {
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {2, 4});
    const TensorId weight = graph.add_external("weight", DType::kF32, {256});
    check_error(
        add_linear(graph, x, {.tensor = weight, .n = 5, .k = 4}, {.gate = GatePairs::kPairs}),
        "gated_activation", "halves");
  }

  TEST_CASE("a gated linear layer is one dispatch, and so is each slice of its weight") {
    Graph graph;
    const TensorId x = graph.add_external("x", DType::kF32, {2, 4});
    const auto part = [&] { return graph.add_external("weight", DType::kF32, {256 * 64}); };
    LinearWeight weight{.tensor = part(), .n = 192, .k = 4};
    weight.slices = {{weight.tensor, 0, 128}, {part(), 128, 64}};
    const auto y = add_linear(graph, x, weight, {.gate = GatePairs::kPairs});
    REQUIRE(y.ok());
    CHECK(graph.tensor(*y).shape == Shape{2, 96});
    const Plan plan = plan_with_kernel(graph, Tier::kBaseline, "matmul_rows__f32_f32_f32");
    CHECK(plan.dispatches.size() == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
