#include "ops/concat_columns.h"

#include "reference/concat_columns.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_concat_columns(const Array& a, const Array& b) {
  PreparedOperator op;
  const TensorId a_id = op.bind("a", reference::to_tensor(a));
  const TensorId b_id = op.bind("b", reference::to_tensor(b));
  const auto y = add_concat_columns(op.graph, a_id, b_id);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_concat_columns_case(const Array& a, const Array& b) {
  const Array expected = reference::concat_columns(a, b).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_concat_columns(a, b)).at("y"), expected, Tolerance{});
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("concat_columns takes an empty side, many rows, long rows and single ones") {
    check_concat_columns_case(random_array({4, 5}, 1), reference::filled({4, 0}, 0));
    check_concat_columns_case(reference::filled({4, 0}, 0), random_array({4, 5}, 1));
    check_concat_columns_case(random_array({40000, 1}, 1), random_array({40000, 2}, 2));
    check_concat_columns_case(random_array({2, 5000}, 1), random_array({2, 700}, 2));
    check_concat_columns_case(random_array({5}, 1), random_array({3}, 2));
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("concat_columns refuses inputs that do not fit") {
    CHECK(check_concat_columns(floats_desc({2, 3, 4}), floats_desc({2, 3, 5}))->shape ==
          Shape{2, 3, 9});
    check_error(check_concat_columns(floats_desc({}), floats_desc({2})), "concat_columns", "()");
    check_error(check_concat_columns(floats_desc({2, 3}), floats_desc({3, 3})), "concat_columns",
                "(3, 3)");
    check_error(check_concat_columns(floats_desc({2, 3}), floats_desc({3})), "concat_columns",
                "(3)");
    check_error(check_concat_columns(floats_desc({2}), {"b", DType::kI64, {2}}), "concat_columns",
                "I64");
  }

  TEST_CASE("concat_columns plans one dispatch, without aliasing") {
    PreparedOperator op;
    const TensorId b = op.graph.add_external("b", DType::kF32, {5, 2});
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 3; ++i) x = add_concat_columns(op.graph, x, b).value();
    op.name_output(x, "y");
    CHECK(op.graph.tensor(x).shape == Shape{5, 70});
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "concat_columns_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
