#include "ops/head_linear.h"

#include "ops/latent_queries.h"
#include "params/matmul.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// Queries of DeepSeek-V3: 128 heads of 64 columns that turn and 128 others.
constexpr uint32_t kQueryHeads = 128, kDepth = 128, kColumns = 512;

struct Products {
  PreparedOperator op;
  ExpertWeight weight;
  TensorId x = kNoTensor;
};

Products products_of(int64_t slots, uint32_t slice_panels) {
  Products made;
  Graph& graph = made.op.graph;
  graph.set_step(static_cast<uint32_t>(slots));
  made.x = graph.add_external("x", DType::kF32, {slots, kQueryHeads * 192});
  const uint32_t columns = kQueryHeads * kColumns;
  const uint32_t step = slice_panels > 0 ? slice_panels * kPanelColumns : columns;
  for (uint32_t first = 0; first < columns; first += step) {
    const uint32_t n = std::min(step, columns - first);
    const TensorId id =
        graph.add_external("w" + std::to_string(first), DType::kF32, {kDepth, int64_t{n}});
    made.weight.all.slices.push_back({.tensor = id, .first = first, .n = n});
  }
  made.weight.all.tensor = made.weight.all.slices[0].tensor;
  made.weight.all.n = columns;
  made.weight.all.k = kDepth;
  made.weight.experts = kQueryHeads;
  made.weight.n = kColumns;
  const auto y = add_head_linear(graph, made.x, made.weight, {.first = 64, .stride = 192});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  made.op.name_output(*y, "y");
  return made;
}

Plan plan_of(const Products& made, double most_flops) {
  DeviceCaps caps = caps_of_tier(Tier::kBaseline);
  caps.max_dispatch_flops = most_flops;
  const auto plan = make_plan(made.op.graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  check_no_aliasing(*plan);
  return *plan;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("head_linear: all heads are one dispatch, which reads every head's matrix") {
    const Plan plan = plan_of(products_of(1, 0), 0);
    REQUIRE(plan.dispatches.size() == 1);
    const Dispatch& d = plan.dispatches[0];
    CHECK(d.groups[2] == kQueryHeads);
    CHECK(d.live_axis == 0);
    CHECK(d.flops == 2.0 * kQueryHeads * kDepth * kColumns);
    CHECK(d.bytes == 4.0 * kQueryHeads * (kDepth * kColumns + kDepth + kColumns));
  }

  TEST_CASE("head_linear: a long step and slices of the weight are several dispatches") {
    const double head = 2.0 * 3 * kDepth * kColumns;
    const Plan some = plan_of(products_of(3, 0), 50.5 * head);
    REQUIRE(some.dispatches.size() == 3);
    CHECK(some.dispatches[0].groups[2] == 50);
    CHECK(some.dispatches[2].groups[2] == 28);
    // A head has 8 panels. Slices of 499 end inside head 62 and inside head 124.
    const Plan cut = plan_of(products_of(3, 499), 0);
    REQUIRE(cut.dispatches.size() == 7);
    std::vector<uint32_t> heads;
    for (const Dispatch& d : cut.dispatches) heads.push_back(d.groups[2]);
    CHECK(heads == std::vector<uint32_t>{62, 1, 1, 61, 1, 1, 3});
  }

  TEST_CASE("head_linear: heads that share a matrix are one dispatch, or as many as limits ask") {
    const auto plan_shared = [](int64_t slots, double most_flops) {
      Products made;
      Graph& graph = made.op.graph;
      graph.set_step(static_cast<uint32_t>(slots));
      made.x = graph.add_external("x", DType::kF32, {slots, kQueryHeads * 192});
      made.weight.all.tensor = graph.add_external("w", DType::kF32, {kDepth, kColumns});
      made.weight.all.n = made.weight.n = kColumns;
      made.weight.all.k = kDepth;
      made.weight.experts = 1;
      const auto y = add_head_linear(graph, made.x, made.weight,
                                     {.first = 64, .stride = 192, .sharing = kQueryHeads});
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      CHECK(graph.tensor(*y).shape == Shape{slots, int64_t{kQueryHeads} * kColumns});
      made.op.name_output(*y, "y");
      return plan_of(made, most_flops);
    };
    const Plan one = plan_shared(1, 0);
    REQUIRE(one.dispatches.size() == 1);
    CHECK(one.dispatches[0].groups[2] == kQueryHeads);
    const Plan some = plan_shared(3, 50.5 * 2.0 * 3 * kDepth * kColumns);
    REQUIRE(some.dispatches.size() == 3);
    CHECK(some.dispatches[2].groups[2] == 28);
  }

  TEST_CASE("head_linear and latent_queries refuse inputs that do not fit") {
    Products made = products_of(2, 0);
    const TensorDesc x = made.op.graph.tensor(made.x);
    check_error(check_head_linear(x, made.weight, {.first = 65, .stride = 192}), "head_linear",
                "24577");
    check_error(check_head_linear(floats_desc({2, 64}), made.weight, {.stride = 192}),
                "head_linear", "(2, 64)");
    check_error(check_head_linear(x, made.weight, {.stride = 192, .sharing = 4}), "head_linear",
                "4 heads share a matrix, but the weight has 128");
    made.weight.all.slices[0].bias_offset = 5;
    check_error(check_head_linear(x, made.weight, {}), "head_linear", "bias");
    made.weight.all.slices[0].bias_offset = kMatmulNone;
    made.weight.all.n -= 64;
    check_error(check_head_linear(x, made.weight, {}), "head_linear", "65472");
    const TensorDesc q = floats_desc({3, 20}), absorbed = floats_desc({3, 14});
    CHECK(check_latent_queries(q, absorbed, floats_desc({3, 11}), {2})->shape == Shape{3, 33});
    check_error(check_latent_queries(q, absorbed, floats_desc({3, 6}), {2}), "latent_queries",
                "(3, 6)");
    check_error(check_latent_queries(q, absorbed, floats_desc({3, 18}), {2}), "latent_queries",
                "(3, 18)");
    check_error(check_latent_queries(q, absorbed, floats_desc({2, 11}), {2}), "latent_queries",
                "(2, 11)");
    check_error(check_latent_queries(q, absorbed, floats_desc({3, 11}), {3}), "latent_queries",
                "3 heads");
  }
}

}  // namespace vkformer::testing
