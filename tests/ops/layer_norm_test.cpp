#include "ops/layer_norm.h"

#include "reference/layer_norm.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct LayerNormCase {
  Array x;
  Array gain;
  Array bias;
  Array residual;  // empty: none
  float epsilon = 1e-5f;
};

LayerNormCase make_layer_norm_case(int64_t rows, int64_t width, uint32_t seed) {
  return {random_array({rows, width}, seed), random_array({width}, seed + 1),
          random_array({width}, seed + 2), random_array({rows, width}, seed + 3)};
}

PreparedOperator prepare_layer_norm(const LayerNormCase& c) {
  PreparedOperator op;
  LayerNormInputs inputs;
  inputs.x = op.bind("x", reference::to_tensor(c.x));
  inputs.gain_bias =
      op.bind("gain_bias", reference::to_tensor(conformance::stacked_rows(c.gain, c.bias)));
  if (!c.residual.data.empty()) {
    inputs.residual = op.bind("residual", reference::to_tensor(c.residual));
  }
  const auto y = add_layer_norm(op.graph, inputs, {c.epsilon});
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

Array expected_layer_norm(const LayerNormCase& c) {
  reference::LayerNormOptions options;
  options.epsilon = c.epsilon;
  options.gain = &c.gain;
  options.bias = &c.bias;
  if (!c.residual.data.empty()) options.residual = &c.residual;
  return reference::layer_norm(c.x, options).value();
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("layer_norm keeps its accuracy far from zero and on constant rows") {
    for (const TierDevice& device : tier_devices()) {
      LayerNormCase c = make_layer_norm_case(6, 96, 5);
      c.residual = {};
      c.x = random_array({6, 96}, 6, 1.0, 1e4);
      check_close(run_poisoned(device, prepare_layer_norm(c)).at("y"), expected_layer_norm(c),
                  {2e-3, 2e-3});
      c.x = reference::filled({6, 96}, 3.1415927410125732);
      check_close(run_poisoned(device, prepare_layer_norm(c)).at("y"), expected_layer_norm(c),
                  {1e-6, 1e-6});
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("layer_norm refuses inputs that do not fit") {
    const TensorDesc x = floats_desc({2, 8});
    check_error(check_layer_norm(floats_desc({}), floats_desc({2, 8}), {}), "layer_norm", "()");
    check_error(check_layer_norm(x, floats_desc({2, 7}), {}), "layer_norm", "(2, 7)");
    check_error(check_layer_norm(x, floats_desc({2, 8}), {-1.0f}), "layer_norm", "epsilon is -1");
    check_error(check_layer_norm_residual(x, floats_desc({8})), "layer_norm", "(8)");
    TensorDesc integers = x;
    integers.dtype = DType::kI64;
    check_error(check_layer_norm(integers, floats_desc({2, 8}), {}), "layer_norm", "I64");
  }

  TEST_CASE("layer_norm plans one dispatch of the tier's kernel") {
    const PreparedOperator op = prepare_layer_norm(make_layer_norm_case(3, 8, 1));
    CHECK(plan_with_kernel(op.graph, Tier::kBaseline, "layer_norm_row__f32_f32_f32")
              .dispatches.size() == 1);
    plan_with_kernel(op.graph, Tier::kSubgroup, "layer_norm_row__f32_f32_f32_subgroup");
  }

  TEST_CASE("layer_norm never shares memory between what it reads and writes") {
    PreparedOperator op;
    const TensorId gain_bias = op.graph.add_external("gain_bias", DType::kF32, {2, 64});
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 4; ++i) x = add_layer_norm(op.graph, {x, gain_bias, x}, {}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "layer_norm_row__f32_f32_f32");
    check_no_aliasing(plan);
    CHECK(plan.barriers.size() == 3);
  }
}

}  // namespace vkformer::testing
