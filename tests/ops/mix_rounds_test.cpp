#include "ops/mix_rounds.h"

#include "reference/mix_rounds.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// Rows as chunk_attention leaves them: weights are above 0.
Array make_rows(const Shape& shape, uint32_t seed) {
  Array x = random_array(shape, seed);
  const int64_t pitch = shape[4];
  for (int64_t row = 0; row < x.size() / pitch; ++row) {
    double& weight = x[row * pitch + pitch - 1];
    weight = 1 + std::abs(weight);
  }
  return reference::round_to_f32(std::move(x));
}

PreparedOperator prepare_mix_rounds(const Array& x) {
  PreparedOperator op;
  const auto y = add_mix_rounds(op.graph, op.bind("x", reference::to_tensor(x)));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_mix_rounds_case(const Array& x) {
  Array expected = reference::mix_rounds(x).value();
  expected.shape = {x.dim(0), x.dim(3), x.dim(1) * (x.dim(4) - 2)};
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_mix_rounds(x)).at("y"), expected,
                tolerance_for(DType::kF32, 4 * x.dim(2)));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("mix_rounds agrees with the reference for every width and number of rounds") {
    for (int64_t width : {1, 7, 31, 32, 33, 129}) {
      check_mix_rounds_case(make_rows({2, 3, 2, 5, width + 2}, static_cast<uint32_t>(width)));
    }
    for (int64_t rounds : {1, 3, 8}) check_mix_rounds_case(make_rows({1, 2, rounds, 7, 6}, 3));
  }

  TEST_CASE("mix_rounds forgets rounds where a token saw itself alone, unless all are so") {
    Array x = make_rows({1, 1, 3, 2, 4}, 4);
    const auto at = [&](int64_t r, int64_t t, int64_t column) -> double& {
      return x[(r * 2 + t) * 4 + column];
    };
    for (int64_t r = 0; r < 3; ++r) {
      at(r, 0, 2) = -1e5;
      at(r, 0, 3) = static_cast<double>(1 + r);
    }
    at(1, 1, 2) = -1e5;
    check_mix_rounds_case(x);
    at(0, 0, 0) = kNan;
    check_mix_rounds_case(x);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("mix_rounds refuses inputs that do not fit") {
    check_error(check_mix_rounds(floats_desc({1, 2, 3, 4})), "mix_rounds", "(1, 2, 3, 4)");
    check_error(check_mix_rounds(floats_desc({1, 2, 3, 4, 2})), "mix_rounds", "(1, 2, 3, 4, 2)");
    check_error(check_mix_rounds({"x", DType::kU32, {1, 2, 3, 4, 5}}), "mix_rounds", "U32");
  }

  TEST_CASE("mix_rounds plans one dispatch, without aliasing") {
    const PreparedOperator op = prepare_mix_rounds(make_rows({1, 2, 3, 4, 5}, 1));
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "mix_rounds_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
  }
}

}  // namespace vkformer::testing
