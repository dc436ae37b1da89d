#include "ops/gated_activation.h"

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("gated_activation refuses inputs that do not fit") {
    check_error(check_gated_activation(floats_desc({}), {}), "gated_activation", "()");
    check_error(check_gated_activation(floats_desc({2, 7}), {}), "gated_activation", "halves");
  }

  TEST_CASE("gated_activation with two kinds stays beside its linear layer") {
    PreparedOperator op;
    const TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    const auto y = add_gated_activation(
        op.graph, x, {.kind = ActivationKind::kTanh, .up = ActivationKind::kSigmoid});
    REQUIRE(y.ok());
    CHECK(op.graph.nodes().back().attrs_text == "kind=tanh up=sigmoid");
  }

  TEST_CASE("gated_activation plans one dispatch, without aliasing") {
    PreparedOperator op;
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 3; ++i) x = add_gated_activation(op.graph, x, {}).value();
    op.name_output(x, "y");
    CHECK(op.graph.tensor(x).shape == Shape{5, 8});
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "gated_activation_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
