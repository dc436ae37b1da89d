#include "ops/log_softmax.h"

#include "reference/log_softmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_log_softmax(const Array& x) {
  PreparedOperator op;
  const auto y = add_log_softmax(op.graph, op.bind("x", reference::to_tensor(x)));
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

void check_log_softmax_case(const Array& x) {
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_log_softmax(x)).at("y"),
                reference::log_softmax(x).value(), tolerance_for(DType::kF32, x.dim(-1)));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("log_softmax keeps -inf, and fills a row with NaN where one is") {
    Array x = random_array({4, 33}, 7);
    x[3] = -kInfinity;
    x[33 + 2] = kNan;
    for (int64_t i = 2 * 33; i < 3 * 33; ++i) x[i] = -kInfinity;
    check_log_softmax_case(x);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("log_softmax refuses inputs that do not fit") {
    check_error(check_log_softmax(floats_desc({})), "log_softmax", "()");
    check_error(check_log_softmax({"x", DType::kF16, {3}}), "log_softmax", "F16");
  }

  TEST_CASE("log_softmax plans one dispatch of the tier's kernel, without aliasing") {
    PreparedOperator op;
    TensorId x = op.graph.add_external("x", DType::kF32, {5, 64});
    for (int i = 0; i < 3; ++i) x = add_log_softmax(op.graph, x).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "log_softmax_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "log_softmax_row__f32_none_f32_subgroup");
  }
}

}  // namespace vkformer::testing
