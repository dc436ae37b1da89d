#include "ops/activation.h"

#include "conformance/activation_cases.h"
#include "reference/activation.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using conformance::kActivationKinds;

PreparedOperator prepare_activation(const Array& x, const std::string& kind) {
  PreparedOperator op;
  const auto y = add_activation(op.graph, op.bind("x", reference::to_tensor(x)),
                                {activation_from_name(kind).value()});
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

Array expected_activation(const Array& x, const std::string& kind) {
  return reference::activation(x, reference::activation_from_name(kind).value()).value();
}

// -20 ... 20, and where functions of the exponential end.
Array sweep() {
  Array x = reference::filled({3, 257}, 0.0);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = -20.0 + 40.0 * static_cast<double>(i) / 770.0;
  const double special[] = {0.0, -0.0, 1e-30, -1e-30, 87.5, -87.5,
                            104, -104, 1e4,   -1e4,   1e30, -1e30};
  for (size_t i = 0; i < std::size(special); ++i) x.data[i] = special[i];
  return reference::round_to_f32(std::move(x));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("activation agrees with the reference for every kind over its whole range") {
    for (const TierDevice& device : tier_devices()) {
      for (const char* kind : kActivationKinds) {
        CAPTURE(kind);
        const Array x = sweep();
        Array wanted = expected_activation(x, kind);
        for (double& value : wanted.data) value = static_cast<double>(static_cast<float>(value));
        check_close(run_poisoned(device, prepare_activation(x, kind)).at("y"), wanted,
                    {1e-6, 4e-6});
      }
    }
  }

  TEST_CASE("activation takes every shape, a scalar too") {
    for (const TierDevice& device : tier_devices()) {
      for (const Shape& shape : {Shape{}, Shape{65537}, Shape{3, 50021}}) {
        const Array x = random_array(shape, 3);
        check_close(run_poisoned(device, prepare_activation(x, "silu")).at("y"),
                    expected_activation(x, "silu"), tolerance_for(DType::kF32, 1));
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("activation knows the names of configurations") {
    CHECK(activation_from_name("gelu_new").value() == ActivationKind::kGeluTanh);
    CHECK(activation_from_name("gelu_pytorch_tanh").value() == ActivationKind::kGeluTanh);
    CHECK(activation_from_name("swish").value() == ActivationKind::kSilu);
    CHECK(activation_from_name("gelu").value() == ActivationKind::kGelu);
    for (const char* kind : kActivationKinds) {
      CHECK(std::string(activation_name(activation_from_name(kind).value())) == kind);
    }
    check_error(activation_from_name("mish"), "activation", "'mish'");
  }

  TEST_CASE("activation refuses inputs that do not fit") {
    check_error(check_activation({"x", DType::kI64, {3}}, {}), "activation", "I64");
    check_error(check_activation(floats_desc({3}), {static_cast<ActivationKind>(9)}), "activation",
                "number 9");
  }

  TEST_CASE("activation plans one dispatch, without aliasing, by rows in a decoding step") {
    PreparedOperator op;
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 3000});
    for (int i = 0; i < 3; ++i) x = add_activation(op.graph, x, {ActivationKind::kGelu}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "activation_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    CHECK(plan.dispatches[0].live_axis == -1);
    check_no_aliasing(plan);
    op.graph.set_step(5);
    const Plan step = plan_with_kernel(op.graph, Tier::kBaseline, "activation_run__f32_none_f32");
    CHECK(step.dispatches[0].live_axis == 0);
    CHECK(step.dispatches[0].groups[0] == 5);
  }
}

}  // namespace vkformer::testing
