#include "ops/argmax.h"

#include "reference/argmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_argmax(const Array& x) {
  PreparedOperator op;
  const auto y = add_argmax(op.graph, op.bind("x", reference::to_tensor(x)));
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

void check_argmax_case(const Array& x) {
  const Array expected = reference::argmax(x).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tensor y = run_poisoned(device, prepare_argmax(x)).at("y");
    CHECK(y.shape == expected.shape);
    const std::vector<uint32_t> indices = words_of(y);
    for (size_t i = 0; i < indices.size(); ++i) CHECK(indices[i] == expected.data[i]);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("argmax takes one row, and one that is a vocabulary") {
    check_argmax_case(random_array({2, 50257}, 9));
    check_argmax_case(random_array({5}, 9));
  }

  TEST_CASE("argmax takes the first of equals, and the first NaN before everything") {
    Array x = reference::filled({6, 131}, -2.0);
    x[130] = -0.0;
    x[7] = 0.0;
    for (int64_t i = 131; i < 262; ++i) x[i] = -kInfinity;
    x[2 * 131 + 90] = kInfinity;
    x[2 * 131 + 30] = kInfinity;
    x[3 * 131 + 129] = kNan;
    x[3 * 131 + 65] = -kNan;
    x[3 * 131 + 2] = kInfinity;
    check_argmax_case(x);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("argmax refuses inputs that do not fit") {
    check_error(check_argmax(floats_desc({})), "argmax", "()");
    check_error(check_argmax(floats_desc({2, 0})), "argmax", "(2, 0)");
  }

  TEST_CASE("argmax plans one dispatch of the tier's kernel, without aliasing") {
    const PreparedOperator op = prepare_argmax(random_array({5, 64}, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "argmax_row__f32_none_u32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "argmax_row__f32_none_u32_subgroup");
  }
}

}  // namespace vkformer::testing
