#include "ops/select_rows.h"

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("select_rows: more rows than there are, and other shapes, are refused") {
    const TensorDesc x = floats_desc({2, 5, 3});
    const auto selected = check_select_rows(x, {.k = 5});
    REQUIRE(selected.ok());
    CHECK(selected->shape == Shape{2, 5});
    CHECK(selected->dtype == DType::kU32);
    check_error(check_select_rows(x, {.k = 6}), "select_rows", "k is 6");
    check_error(check_select_rows(x, {.k = 0}), "select_rows", "k is 0");
    check_error(check_select_rows(floats_desc({5, 3}), {.k = 1}), "select_rows", "(5, 3)");
    check_error(check_select_rows({"x", DType::kU32, {2, 5, 3}}, {.k = 1}), "select_rows", "U32");
  }

  TEST_CASE("select_rows plans two dispatches, without aliasing") {
    PreparedOperator op;
    const TensorId x = op.graph.add_external("x", DType::kF32, {2, 300, 5});
    op.name_output(add_select_rows(op.graph, x, {.k = 7}).value(), "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "select_rows_rank__u32_none_u32");
    CHECK(plan.dispatches.size() == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
