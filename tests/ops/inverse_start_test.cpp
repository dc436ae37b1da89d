#include "ops/inverse_start.h"

#include "ops/matmul.h"
#include "reference/inverse_start.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using Maximum = InverseStartAttrs::Maximum;

// Rows that sum to 1, as a softmax leaves them.
Array weights(const Shape& shape, uint32_t seed) {
  Array a = random_array(shape, seed);
  const int64_t side = shape[2];
  for (int64_t row = 0; row < a.size() / side; ++row) {
    double total = 0;
    for (int64_t j = 0; j < side; ++j) total += a[row * side + j] * a[row * side + j] + 0.1;
    for (int64_t j = 0; j < side; ++j) {
      double& value = a[row * side + j];
      value = (value * value + 0.1) / total;
    }
  }
  return reference::round_to_f32(std::move(a));
}

PreparedOperator prepare_inverse_start(const Array& a, Maximum maximum) {
  PreparedOperator op;
  const TensorId x = op.bind("a", reference::to_tensor(a));
  const int64_t side = a.dim(1);
  const Array ones = reference::filled({1, side}, 1.0);
  const auto sums =
      add_matmul(op.graph, op.bind("ones", reference::to_tensor(ones)), x, kNoTensor, {});
  REQUIRE_MESSAGE(sums.ok(), sums.error().message);
  const auto y = add_inverse_start(op.graph, x, *sums, {maximum});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_inverse_start_case(const Array& a, Maximum maximum) {
  const auto of = maximum == Maximum::kOwn ? reference::InverseMaximum::kOwn
                                           : reference::InverseMaximum::kShared;
  const Array expected = reference::inverse_start(a, of).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_inverse_start(a, maximum)).at("y"), expected,
                tolerance_for(DType::kF32, a.dim(1)));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("inverse_start agrees with the reference for every side and count of matrices") {
    for (int64_t side : {1, 2, 7, 8, 9, 31, 64}) {
      for (int64_t count : {1, 5, 33}) {
        const Array a = weights({count, side, side}, static_cast<uint32_t>(side + count));
        check_inverse_start_case(a, Maximum::kShared);
        check_inverse_start_case(a, Maximum::kOwn);
      }
    }
  }

  TEST_CASE("inverse_start: a NaN fills its matrix, or all where they share the maximum") {
    Array a = weights({3, 4, 4}, 2);
    a[16 + 5] = kNan;
    check_inverse_start_case(a, Maximum::kOwn);
    check_inverse_start_case(a, Maximum::kShared);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("inverse_start refuses inputs that do not fit") {
    const TensorDesc a = floats_desc({3, 4, 4});
    check_error(check_inverse_start(floats_desc({3, 4, 5}), floats_desc({3, 1, 5})),
                "inverse_start", "(3, 4, 5)");
    check_error(check_inverse_start(a, floats_desc({3, 4, 1})), "inverse_start", "(3, 1, 4)");
    check_error(check_inverse_start(floats_desc({4, 4}), a), "inverse_start", "(4, 4)");
  }

  TEST_CASE("inverse_start plans one dispatch behind the sums, without aliasing") {
    const PreparedOperator op = prepare_inverse_start(weights({3, 4, 4}, 1), Maximum::kShared);
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "inverse_start_matrix__f32_none_f32");
    CHECK(plan.dispatches.size() == 2);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
