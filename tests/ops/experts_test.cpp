#include "ops/experts.h"

#include "ops/expert_route.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

constexpr int64_t kRows = 3, kWidth = 256, kFfn = 192;
constexpr uint32_t kExperts = 128, kChoices = 8;

// A layer of 128 experts of which every row takes 8, with weights in that format.
struct Layer {
  PreparedOperator op;
  uint64_t up_bytes = 0, down_bytes = 0;  // of one expert
  ExpertWeight up, down;
  ExpertsInputs inputs;
};

ExpertWeight weight_of(Graph& graph, const char* name, uint32_t n, uint32_t k,
                       MatrixFormat format) {
  const uint64_t bytes = 4 * matrix_words(format, int64_t{kExperts} * n, k);
  const TensorId id = graph.add_external(name, DType::kU32, {static_cast<int64_t>(bytes / 4)});
  return {{.tensor = id, .n = kExperts * n, .k = k, .format = format}, kExperts, n};
}

Layer layer_of(int64_t rows, bool step, MatrixFormat format) {
  Layer layer;
  Graph& graph = layer.op.graph;
  if (step) graph.set_step(static_cast<uint32_t>(rows));
  layer.inputs.x = graph.add_external("x", DType::kF32, {rows, kWidth});
  layer.inputs.routes = graph.add_external("routes", DType::kU32, {rows, kChoices, 2});
  layer.up = weight_of(graph, "up", 2 * kFfn, kWidth, format);
  layer.down = weight_of(graph, "down", kWidth, kFfn, format);
  layer.up_bytes = 4 * matrix_words(format, 2 * kFfn, kWidth);
  layer.down_bytes = 4 * matrix_words(format, kWidth, kFfn);
  const TensorId y =
      add_experts(graph, layer.inputs, layer.up, layer.down, {.choices = kChoices}).value();
  layer.op.name_output(y, "y");
  return layer;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("experts: a step reads the weights of the experts that its rows chose") {
    for (const MatrixFormat format : kMatrixFormats) {
      const Layer layer = layer_of(kRows, true, format);
      const auto plan = make_plan(layer.op.graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      REQUIRE(plan->dispatches.size() == 3);
      const double pairs = static_cast<double>(kRows) * kChoices;
      const double activations[] = {4 * pairs * (kWidth + 2 * kFfn), 4 * pairs * (kFfn + kWidth)};
      CHECK(plan->dispatches[0].bytes ==
            pairs * static_cast<double>(layer.up_bytes) + activations[0]);
      CHECK(plan->dispatches[1].bytes ==
            pairs * static_cast<double>(layer.down_bytes) + activations[1]);
      for (const Dispatch& d : plan->dispatches) CHECK(d.live_axis == 0);
      check_no_aliasing(*plan);
    }
  }

  TEST_CASE("experts: many rows are sorted by expert and multiplied in tiles") {
    const Layer layer = layer_of(500, false, MatrixFormat::kF32);
    const Plan plan =
        plan_with_kernel(layer.op.graph, Tier::kBaseline, "expert_tiled__f32_f32_f32");
    REQUIRE(plan.dispatches.size() == 4);
    CHECK(plan.dispatches[1].groups[1] == 500 * kChoices / 32 + kExperts);
    check_no_aliasing(plan);
  }

  TEST_CASE("experts: rows go by windows where a binding ends") {
    const Layer layer = layer_of(500, false, MatrixFormat::kF32);
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    const auto weights =
        static_cast<uint64_t>(kExperts) * std::max(layer.up_bytes, layer.down_bytes);
    caps.limits.max_storage_range = static_cast<uint32_t>(weights);
    const auto whole = make_plan(layer.op.graph, caps, Precision::kF32);
    REQUIRE(whole.ok());
    CHECK(whole->dispatches.size() == 4);
    const Layer longer = layer_of(20000, false, MatrixFormat::kF32);
    const auto cut = make_plan(longer.op.graph, caps, Precision::kF32);
    REQUIRE_MESSAGE(cut.ok(), cut.error().message);
    CHECK(cut->dispatches.size() > 4);
    CHECK(cut->dispatches.size() % 4 == 0);
  }

  TEST_CASE("experts: rows go by windows where the tiles of a dispatch end") {
    constexpr int64_t kManyRows = 600'000, kNarrow = 8;
    PreparedOperator op;
    Graph& graph = op.graph;
    const ExpertsInputs inputs{
        .x = graph.add_external("x", DType::kF32, {kManyRows, kNarrow}),
        .routes = graph.add_external("routes", DType::kU32, {kManyRows, kChoices, 2})};
    const auto weight = [&](const char* name, uint32_t n, uint32_t k) {
      ExpertWeight all = weight_of(graph, name, 64, k, MatrixFormat::kF32);  // a panel each
      all.n = n;
      return all;
    };
    const ExpertWeight up = weight("up", 8, kNarrow), down = weight("down", kNarrow, 4);
    op.name_output(add_experts(graph, inputs, up, down, {.choices = kChoices}).value(), "y");
    const auto plan = make_plan(graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    CHECK(plan->dispatches.size() > 4);
    for (const Dispatch& d : plan->dispatches) CHECK(d.groups[1] <= 65535);
  }

  TEST_CASE("experts: a GPU with few registers has tiles of 16 rows") {
    const Layer layer = layer_of(500, false, MatrixFormat::kQ8);
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    caps.gpu.matmul_packed_block = 16;
    const auto plan = make_plan(layer.op.graph, caps, Precision::kF32);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    REQUIRE(plan->dispatches.size() == 4);
    CHECK(plan->dispatches[1].groups[1] == 500 * kChoices / 16 + kExperts);
    check_no_aliasing(*plan);
  }

  TEST_CASE("expert_route and experts refuse inputs that do not fit") {
    const TensorDesc logits = floats_desc({2, 8});
    const auto refused = [&](const ExpertRouteAttrs& attrs, const std::string& part) {
      check_error(check_expert_route(logits, nullptr, attrs), "expert_route", part);
    };
    refused({.experts = 9, .choices = 2}, "9");
    refused({.experts = 8, .choices = 0}, "0");
    refused({.experts = 8, .choices = 9}, "9");
    refused({.experts = 8, .choices = 2, .groups = 3}, "3 groups");
    refused({.experts = 8, .choices = 2, .groups = 8}, "8 groups");
    refused({.experts = 8, .choices = 5, .groups = 4, .kept_groups = 2}, "4 can be chosen");
    const TensorDesc bias = floats_desc({7});
    check_error(check_expert_route(logits, &bias, {.experts = 8, .choices = 2}), "expert_route",
                "(7)");
    Layer layer = layer_of(kRows, false, MatrixFormat::kF32);
    const Graph& graph = layer.op.graph;
    const auto check = [&](const ExpertsAttrs& attrs) {
      return check_experts(graph.tensor(layer.inputs.x), graph.tensor(layer.inputs.routes),
                           layer.up, layer.down, attrs);
    };
    check_error(check({.choices = 9}), "experts", "9");
    check_error(check({.choices = 8, .gate = GatePairs::kNo}), "experts", "up");
    check_error(check({.choices = 8, .gate_limit = -1.0f}), "experts", "-1");
    layer.down.experts = 64;
    check_error(check({.choices = 8}), "experts", "down");
  }
}

}  // namespace vkformer::testing
