#include "ops/combine.h"

#include "reference/combine.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_combine(const Array& a, const Array& b, CombineAttrs attrs) {
  PreparedOperator op;
  const TensorId a_id = op.bind("a", reference::to_tensor(a));
  const TensorId b_id = op.bind("b", reference::to_tensor(b));
  const auto y = add_combine(op.graph, a_id, b_id, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_combine_case(const Array& a, const Array& b, CombineAttrs attrs) {
  const double most = attrs.most > 0 ? attrs.most : kInfinity;
  const Array expected = reference::combine(a, attrs.alpha, b, attrs.beta, most).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_combine(a, b, attrs)).at("y"), expected,
                tolerance_for(DType::kF32, 2));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("combine takes scalars and more elements than a folded row") {
    check_combine_case(random_array({}, 1), random_array({}, 2), {2.0f, 3.0f});
    check_combine_case(random_array({70001}, 1), random_array({70001}, 2), {2.0f, 3.0f});
  }

  TEST_CASE("combine passes NaN and infinity on, also through a factor of zero") {
    Array a = random_array({3, 11}, 1);
    Array b = random_array({3, 11}, 2);
    a[2] = kNan;
    a[3] = kInfinity;
    b[14] = kInfinity;
    b[15] = kNan;
    check_combine_case(a, b, {});
    check_combine_case(a, b, {0.0f, 1.0f});
    b[16] = -kInfinity;
    check_combine_case(a, b, {0.5f, 1.0f, 0.25f});
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("combine refuses inputs that do not fit") {
    const TensorDesc a = floats_desc({2, 3});
    CHECK(check_combine(a, a, {})->shape == Shape{2, 3});
    check_error(check_combine(a, floats_desc({3, 2}), {}), "combine", "(3, 2)");
    check_error(check_combine(a, {"b", DType::kU32, {2, 3}}, {}), "combine", "U32");
    check_error(check_combine(a, a, {kNan, 1.0f}), "combine", "alpha");
    check_error(check_combine(a, a, {1.0f, kInfinity}), "combine", "beta");
    check_error(check_combine(a, a, {1.0f, 1.0f, kNan}), "combine", "limit");
    check_error(check_combine(a, a, {1.0f, 1.0f, -1.0f}), "combine", "-1");
  }

  TEST_CASE("combine plans one dispatch, without aliasing, and keeps a step's rows") {
    PreparedOperator op;
    const TensorId b = op.graph.add_external("b", DType::kF32, {5, 64});
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 3; ++i) x = add_combine(op.graph, x, b, {}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "combine_run__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
    op.graph.set_step(5);
    const Plan step = plan_with_kernel(op.graph, Tier::kBaseline, "combine_run__f32_none_f32");
    CHECK(step.dispatches[0].groups[0] == 5);
    CHECK(step.dispatches[0].live_axis == 0);
  }
}

}  // namespace vkformer::testing
