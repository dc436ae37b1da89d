#include "ops/grid_distances.h"

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("grid_distances refuses inputs that do not fit") {
    const auto check = [](const Shape& qkv, const Shape& table, const GridDistancesAttrs& attrs) {
      return check_grid_distances(floats_desc(qkv), floats_desc(table), attrs);
    };
    const GridDistancesAttrs grid{.heads = 2, .height = 3, .width = 4, .scale = 0.5f};
    const char* name = "grid_distances";
    CHECK(check({2, 12, 30}, {12, 5}, grid)->shape == Shape{2, 12, 2 * (3 * 5 + 2 * 7)});
    check_error(check({2, 13, 30}, {12, 5}, grid), name, "(2, 13, 30)");
    check_error(check({2, 12, 20}, {12, 5}, grid), name, "(2, 12, 20)");
    check_error(check({2, 12, 30}, {13, 5}, grid), name, "(13, 5)");
    GridDistancesAttrs wrong = grid;
    wrong.height = 0;
    check_error(check({2, 12, 30}, {12, 5}, wrong), name, "0x4");
    wrong = grid;
    wrong.scale = kNan;
    check_error(check({2, 12, 30}, {12, 5}, wrong), name, "scale");
    wrong = grid;
    wrong.width = 1u << 20;
    check_error(check({2, 12, 30}, {12, 5}, wrong), name, "4096");
  }

  TEST_CASE("grid_distances plans one dispatch of a workgroup a token") {
    PreparedOperator op;
    const TensorId qkv = op.graph.add_external("qkv", DType::kF32, {2, 12, 30});
    const TensorId table = op.graph.add_external("table", DType::kF32, {12, 5});
    op.name_output(add_grid_distances(op.graph, qkv, table, {2, 3, 4, 0.5f}).value(), "y");
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "grid_distances_row__f32_none_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups[0] == 24);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
