#include "ops/rms_norm.h"

#include "reference/rms_norm.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare(const Array& x, const Array& gain, float epsilon) {
  PreparedOperator op;
  const TensorId x_id = op.bind("x", reference::to_tensor(x));
  const TensorId gain_id = op.bind("gain", reference::to_tensor(gain));
  const auto y = add_rms_norm(op.graph, x_id, gain_id, {epsilon});
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

Array expected(const Array& x, const Array& gain, float epsilon) {
  reference::RmsNormOptions options;
  options.epsilon = epsilon;
  options.gain = &gain;
  return reference::rms_norm(x, options).value();
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("rms_norm agrees with the reference on every tier and width") {
    for (const TierDevice& device : tier_devices()) {
      for (int64_t width : kWidths) {
        CAPTURE(device.tier);
        const Array x = random_array({2, 3, width}, static_cast<uint32_t>(width));
        const Array gain = random_array({width}, 77);
        check_close(run_poisoned(device, prepare(x, gain, 1e-6f)).at("y"), expected(x, gain, 1e-6f),
                    tolerance_for(DType::kF32, width));
      }
    }
  }

  TEST_CASE("rms_norm passes NaN and infinity on in their rows only") {
    for (const TierDevice& device : tier_devices()) {
      Array x = random_array({4, 33}, 3);
      const Array gain = random_array({33}, 4);
      x[1] = kNan;
      x[2 * 33 + 1] = kInfinity;
      check_close(run_poisoned(device, prepare(x, gain, 1e-5f)).at("y"), expected(x, gain, 1e-5f),
                  tolerance_for(DType::kF32, 33));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("rms_norm refuses inputs that do not fit") {
    check_error(check_rms_norm(floats_desc({}), floats_desc({1}), {}), "rms_norm", "()");
    check_error(check_rms_norm(floats_desc({2, 8}), floats_desc({7}), {}), "rms_norm", "(7)");
    check_error(check_rms_norm(floats_desc({2, 8}), floats_desc({8}), {-1.0f}), "rms_norm",
                "epsilon");
  }

  TEST_CASE("rms_norm plans one dispatch of the tier's kernel, without aliasing") {
    PreparedOperator op;
    const TensorId gain = op.graph.add_external("gain", DType::kF32, {64});
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 3; ++i) x = add_rms_norm(op.graph, x, gain, {}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "rms_norm_row__f32_f32_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "rms_norm_row__f32_f32_f32_subgroup");
  }
}

}  // namespace vkformer::testing
