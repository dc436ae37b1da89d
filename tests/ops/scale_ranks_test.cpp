#include "ops/scale_ranks.h"

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("scale_ranks refuses inputs that do not fit") {
    const TensorDesc x = floats_desc({2, 3, 8}), scales = floats_desc({4, 3});
    const TensorDesc ranks = floats_desc({1, 8});
    CHECK(check_scale_ranks(x, scales, ranks, {.items = 2, .beams = 2})->shape == x.shape);
    check_error(check_scale_ranks({"x", DType::kU32, {2, 8}}, scales, ranks, {}), "scale_ranks",
                "U32");
    check_error(check_scale_ranks(x, floats_desc({4}), ranks, {}), "scale_ranks", "scales");
    check_error(check_scale_ranks(x, floats_desc({0, 3}), ranks, {}), "scale_ranks", "(0, 3)");
    check_error(check_scale_ranks(x, scales, floats_desc({1, 7}), {}), "scale_ranks", "8 columns");
    check_error(check_scale_ranks(x, scales, ranks, {.items = 4}), "scale_ranks", "6 rows");
    check_error(check_scale_ranks(x, scales, ranks, {.items = 0}), "scale_ranks", "0 items");
    check_error(check_scale_ranks(x, scales, ranks, {.items = 3, .beams = 2}), "scale_ranks",
                "4 sequences");
  }

  TEST_CASE("scale_ranks of a step takes a row for each slot and their state") {
    Graph graph;
    graph.set_step(5);
    ScaleRanksInputs in{.x = graph.add_external("x", DType::kF32, {4, 8}),
                        .scales = graph.add_external("scales", DType::kF32, {5, 2}),
                        .ranks = graph.add_external("ranks", DType::kF32, {1, 8}),
                        .state = graph.add_external("state", DType::kU32, {4096})};
    check_error(add_scale_ranks(graph, in, {}), "scale_ranks", "4 rows");
    in.x = graph.add_external("y", DType::kF32, {5, 8});
    CHECK(add_scale_ranks(graph, in, {}).ok());
    in.state = kNoTensor;
    check_error(add_scale_ranks(graph, in, {}), "scale_ranks", "state");
  }

  TEST_CASE("scale_ranks plans one dispatch, by rows of items or by live slots") {
    PreparedOperator op;
    const auto inputs = [&](Shape shape) {
      return ScaleRanksInputs{.x = op.graph.add_external("x", DType::kF32, std::move(shape)),
                              .scales = op.graph.add_external("scales", DType::kF32, {5, 2}),
                              .ranks = op.graph.add_external("ranks", DType::kF32, {1, 8}),
                              .state = op.graph.add_external("state", DType::kU32, {4096})};
    };
    op.name_output(add_scale_ranks(op.graph, inputs({5, 3, 8}), {.items = 5}).value(), "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "scale_ranks_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups[0] == 15);
    op = PreparedOperator();
    op.graph.set_step(5);
    op.name_output(add_scale_ranks(op.graph, inputs({5, 8}), {}).value(), "y");
    const Plan step = plan_with_kernel(op.graph, Tier::kBaseline, "scale_ranks_step__f32_none_f32");
    CHECK(step.dispatches[0].live_axis == 0);
    CHECK(step.dispatches[0].bindings.size() == 5);
  }
}

}  // namespace vkformer::testing
