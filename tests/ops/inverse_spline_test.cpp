#include "ops/inverse_spline.h"

#include <limits>

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("inverse_spline refuses inputs that do not fit") {
    const auto check = [](const Shape& x, const Shape& params, InverseSplineAttrs attrs,
                          const std::string& part) {
      check_error(check_inverse_spline(floats_desc(x), floats_desc(params), attrs),
                  "inverse_spline", part);
    };
    check({2, 3}, {2, 3, 28}, {}, "(2, 3, 29)");
    check({2, 3}, {6, 29}, {}, "(6, 29)");
    check({2}, {2, 0}, {.bins = 0}, "0 bins");
    check({2}, {2, 770}, {.bins = 257}, "257");
    check({2}, {2, 29}, {.bound = 0.0f}, "above 0");
    check({2}, {2, 29}, {.bound = std::numeric_limits<float>::quiet_NaN()}, "above 0");
    check({2}, {2, 29}, {.bound = std::numeric_limits<float>::infinity()}, "finite");
  }

  TEST_CASE("inverse_spline plans one dispatch, without aliasing") {
    PreparedOperator op;
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 41});
    const TensorId params = op.graph.add_external("params", DType::kF32, {5, 41, 29});
    for (int i = 0; i < 3; ++i) x = add_inverse_spline(op.graph, x, params, {}).value();
    op.name_output(x, "y");
    CHECK(op.graph.tensor(x).shape == Shape{5, 41});
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "inverse_spline_element__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
