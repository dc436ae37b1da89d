#include "ops/rms_norm.h"

#include "support/operator_check.h"

namespace vkformer::testing {

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
