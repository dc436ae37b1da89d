#include "ops/deformable_attention.h"

#include "reference/deformable_attention.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// Two heads of three columns over grids of 2 x 3 and 1 x 2 tokens.
const DeformableAttentionAttrs kTwoGrids{.heads = 2, .points = 2, .levels = {{2, 3}, {1, 2}}};
const reference::DeformableOptions kTwoGridOptions{2, 2, {{2, 3}, {1, 2}}};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("deformable_attention passes NaN of values, scores, offsets and boxes on") {
    const Array value = random_array({1, 8, 6}, 1);
    const Array samples = random_array({1, 3, 24}, 2);
    Array boxes = random_array({1, 3, 4}, 3);
    for (int64_t i = 0; i < boxes.size(); ++i) boxes[i] = 0.5 + boxes[i] / 16.0;
    boxes = reference::round_to_f32(std::move(boxes));
    struct Changed {
      Array value, samples, boxes;
    };
    std::vector<Changed> all(6, {value, samples, boxes});
    all[0].value[13] = kNan;
    all[1].samples[17] = kNan;       // a score of the first query
    all[2].samples[24] = kNan;       // an offset of the second one
    all[3].boxes[11] = kNan;         // a height
    all[4].samples[24] = 1e30;       // far outside
    all[5].samples[25] = kInfinity;  // outside as well
    for (const Changed& one : all) {
      const auto expected =
          reference::deformable_attention(one.value, one.samples, one.boxes, kTwoGridOptions);
      REQUIRE(expected.ok());
      for (const TierDevice& device : tier_devices()) {
        CAPTURE(device.tier);
        PreparedOperator op;
        const TensorId v = op.bind("value", reference::to_tensor(one.value));
        const TensorId s = op.bind("samples", reference::to_tensor(one.samples));
        const TensorId b = op.bind("boxes", reference::to_tensor(one.boxes));
        const auto y =
            add_deformable_attention(op.graph, {.value = v, .samples = s, .boxes = b}, kTwoGrids);
        REQUIRE_MESSAGE(y.ok(), y.error().message);
        op.name_output(*y, "y");
        check_close(run_poisoned(device, op).at("y"), *expected, tolerance_for(DType::kF32, 32));
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("deformable_attention refuses inputs that do not fit") {
    const auto check = [](const Shape& value, const Shape& samples, const Shape& boxes,
                          const DeformableAttentionAttrs& attrs) {
      return check_deformable_attention(floats_desc(value), floats_desc(samples),
                                        floats_desc(boxes), attrs);
    };
    const char* name = "deformable_attention";
    CHECK(check({1, 8, 6}, {1, 3, 24}, {1, 3, 4}, kTwoGrids)->shape == Shape{1, 3, 6});
    check_error(check({1, 9, 6}, {1, 3, 24}, {1, 3, 4}, kTwoGrids), name, "(1, 9, 6)");
    check_error(check({1, 8, 7}, {1, 3, 24}, {1, 3, 4}, kTwoGrids), name, "(1, 8, 7)");
    check_error(check({1, 8, 6}, {1, 3, 23}, {1, 3, 4}, kTwoGrids), name, "(1, 3, 23)");
    check_error(check({1, 8, 6}, {1, 3, 24}, {1, 2, 4}, kTwoGrids), name, "(1, 2, 4)");
    check_error(check({1, 8, 6}, {2, 3, 24}, {1, 3, 4}, kTwoGrids), name, "(2, 3, 24)");
    DeformableAttentionAttrs many = kTwoGrids;
    many.heads = 1000;
    check_error(check({1, 8, 6}, {1, 3, 24}, {1, 3, 4}, many), name, "1024 samples");
    many = {.heads = 1, .points = 1, .levels = std::vector<DeformableLevel>(9)};
    check_error(check({1, 9, 6}, {1, 3, 27}, {1, 3, 4}, many), name, "8 levels");
    many.levels = {{1, 1u << 16}};
    check_error(check({1, 9, 6}, {1, 3, 27}, {1, 3, 4}, many), name, "1x65536");
  }

  TEST_CASE("deformable_attention plans one dispatch of a workgroup a query") {
    PreparedOperator op;
    const TensorId value = op.graph.add_external("value", DType::kF32, {1, 8, 6});
    const TensorId samples = op.graph.add_external("samples", DType::kF32, {1, 3, 24});
    const TensorId boxes = op.graph.add_external("boxes", DType::kF32, {1, 3, 4});
    op.name_output(add_deformable_attention(
                       op.graph, {.value = value, .samples = samples, .boxes = boxes}, kTwoGrids)
                       .value(),
                   "y");
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "deformable_attention_row__f32_none_f32");
    REQUIRE(plan.dispatches.size() == 1);
    CHECK(plan.dispatches[0].groups[0] == 3);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
