#include "ops/row_entropy.h"

#include "reference/softmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_row_entropy(const Array& x) {
  PreparedOperator op;
  const auto y = add_row_entropy(op.graph, op.bind("x", reference::to_tensor(x)));
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

// -sum p ln p of every row. x (..., S) -> (...)
Array expected_row_entropy(const Array& x) {
  Array y = reference::filled(Shape(x.shape.begin(), x.shape.end() - 1), 0.0);
  const int64_t width = x.dim(-1);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0.0) y[i / width] -= x[i] * std::log(x[i]);
  }
  return y;
}

void check_row_entropy_case(const Array& x) {
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_row_entropy(x)).at("y"), expected_row_entropy(x),
                tolerance_for(DType::kF32, x.dim(-1)));
  }
}

Array probabilities(int64_t rows, int64_t width, uint32_t seed) {
  const Array scores = random_array({1, 1, rows, width}, seed, 3);
  Array p = reference::softmax(scores).value();
  p.shape = {rows, width};
  return reference::round_to_f32(std::move(p));
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("row_entropy counts 0 ln 0 as 0 and passes NaN on") {
    Array p = probabilities(4, 33, 7);
    for (int64_t i = 0; i < 33; ++i) p[i] = i == 20 ? 1.0 : 0.0;
    for (int64_t i = 33; i < 66; ++i) p[i] = 0.0;
    p[66 + 5] = kNan;
    check_row_entropy_case(p);
    p[99 + 6] = -0.5;
    for (const TierDevice& device : tier_devices()) {
      const Tensor y = run_poisoned(device, prepare_row_entropy(p)).at("y");
      CHECK(std::isnan(y.to_floats().value()[3]));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("row_entropy refuses inputs that do not fit") {
    check_error(check_row_entropy(floats_desc({})), "row_entropy", "()");
  }

  TEST_CASE("row_entropy plans one dispatch of the tier's kernel, without aliasing") {
    const PreparedOperator op = prepare_row_entropy(random_array({5, 64}, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "row_entropy_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "row_entropy_row__f32_none_f32_subgroup");
  }
}

}  // namespace vkformer::testing
