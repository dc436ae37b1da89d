#include "ops/gated_activation.h"

#include "reference/gated_activation.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare(const Array& x, ActivationKind kind) {
  PreparedOperator op;
  const auto y = add_gated_activation(op.graph, op.bind("x", reference::to_tensor(x)), {kind});
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("gated_activation agrees with the reference on every tier and width") {
    for (const TierDevice& device : tier_devices()) {
      for (int64_t width : kWidths) {
        CAPTURE(device.tier);
        const Array x = random_array({2, 3, 2 * width}, static_cast<uint32_t>(width), 2);
        const Tolerance tolerance = tolerance_for(DType::kF32, 1);
        check_close(run_poisoned(device, prepare(x, ActivationKind::kSilu)).at("y"),
                    reference::gated_activation(x, reference::ActivationKind::kSilu).value(),
                    tolerance);
        check_close(run_poisoned(device, prepare(x, ActivationKind::kGelu)).at("y"),
                    reference::gated_activation(x, reference::ActivationKind::kGelu).value(),
                    tolerance);
      }
    }
  }

  TEST_CASE("gated_activation passes NaN on from either half") {
    for (const TierDevice& device : tier_devices()) {
      Array x = random_array({2, 66}, 1);
      x[2] = kNan;
      x[33 + 5] = kNan;
      x[66 + 7] = kInfinity;
      check_close(run_poisoned(device, prepare(x, ActivationKind::kSilu)).at("y"),
                  reference::gated_activation(x, reference::ActivationKind::kSilu).value(),
                  tolerance_for(DType::kF32, 1));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("gated_activation refuses inputs that do not fit") {
    check_error(check_gated_activation(floats_desc({}), {}), "gated_activation", "()");
    check_error(check_gated_activation(floats_desc({2, 7}), {}), "gated_activation", "halves");
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
