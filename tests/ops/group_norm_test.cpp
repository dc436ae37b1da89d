#include "ops/group_norm.h"

#include "reference/group_norm.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// x (B, C, T) -> (B, T, C)
Array tokens_first(const Array& x) {
  Array y = reference::filled({x.dim(0), x.dim(2), x.dim(1)}, 0.0);
  const int64_t plane = x.dim(1) * x.dim(2);
  for (int64_t i = 0; i < x.size(); ++i) {
    y[i / plane * plane + i % x.dim(2) * x.dim(1) + i / x.dim(2) % x.dim(1)] = x[i];
  }
  return y;
}

PreparedOperator prepare_group_norm(const Array& x, const Array& gain_bias, GroupNormAttrs attrs) {
  PreparedOperator op;
  const TensorId x_id = op.bind("x", reference::to_tensor(x));
  const TensorId gain_id = op.bind("gain_bias", reference::to_tensor(gain_bias));
  const auto y = add_group_norm(op.graph, x_id, gain_id, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_group_norm_case(const Array& x, uint32_t groups) {
  const int64_t channels = x.dim(1);
  const Array gain_bias = random_array({2, channels}, 8);
  Array gain = reference::filled({channels}, 0.0);
  Array bias = gain;
  for (int64_t c = 0; c < channels; ++c) {
    gain[c] = gain_bias[c];
    bias[c] = gain_bias[channels + c];
  }
  const Array expected = reference::group_norm(x, gain, bias, {groups, 1e-5f}).value();
  const Tolerance tolerance = tolerance_for(DType::kF32, channels / groups * x.dim(2));
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const GroupNormAttrs first{groups, 1e-5f, ChannelOrder::kFirst};
    check_close(run_poisoned(device, prepare_group_norm(x, gain_bias, first)).at("y"), expected,
                tolerance);
    const GroupNormAttrs last{groups, 1e-5f, ChannelOrder::kLast};
    check_close(run_poisoned(device, prepare_group_norm(tokens_first(x), gain_bias, last)).at("y"),
                tokens_first(expected), tolerance);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("group_norm passes NaN and infinity on in their groups only") {
    Array x = random_array({2, 8, 9}, 5);
    x[10] = kNan;
    x[72 + 50] = kInfinity;
    check_group_norm_case(x, 4);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("reference group_norm: mean 0 and variance 1 in every group") {
    const Array x = {{1, 2, 2}, {1, 3, 5, 5}};
    const Array gain = {{2}, {1, 10}};
    const Array bias = {{2}, {0, 1}};
    const auto y = reference::group_norm(x, gain, bias, {2, 0.0});
    REQUIRE(y.ok());
    CHECK((*y)[0] == doctest::Approx(-1));
    CHECK((*y)[1] == doctest::Approx(1));
    const auto whole = reference::group_norm(x, gain, bias, {1, 0.25});
    REQUIRE(whole.ok());
    CHECK((*whole)[0] == doctest::Approx(-2.5 / std::sqrt(3.0)));
    CHECK((*whole)[3] == doctest::Approx(1.5 / std::sqrt(3.0) * 10 + 1));
    CHECK_FALSE(reference::group_norm(x, gain, bias, {3, 0.0}).ok());
  }

  TEST_CASE("group_norm refuses inputs that do not fit") {
    const auto check = [](const Shape& x, const Shape& gain_bias, GroupNormAttrs attrs,
                          const std::string& part) {
      check_error(check_group_norm(floats_desc(x), floats_desc(gain_bias), attrs), "group_norm",
                  part);
    };
    check({2, 8}, {2, 8}, {}, "(2, 8)");
    check({2, 3, 4, 8}, {2, 8}, {}, "(2, 3, 4, 8)");
    check({2, 0, 8}, {2, 8}, {}, "(2, 0, 8)");
    check({2, 3, 8}, {8}, {}, "(2, 8)");
    check({2, 3, 8}, {2, 3}, {}, "(2, 3)");
    check({2, 3, 8}, {2, 8}, {0}, "0 groups");
    check({2, 3, 8}, {2, 8}, {3}, "3 groups");
    check({2, 3, 8}, {2, 8}, {2, kNan}, "epsilon");
    check({1 << 20, 1 << 10, 8}, {2, 8}, {}, "2^32");
  }

  TEST_CASE("group_norm plans one dispatch of the tier's kernel, without aliasing") {
    PreparedOperator op;
    const TensorId gain = op.graph.add_external("gain_bias", DType::kF32, {2, 8});
    TensorId x = op.graph.add_external("x", DType::kF32, {2, 5, 8});
    for (int i = 0; i < 3; ++i) x = add_group_norm(op.graph, x, gain, {4}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "group_norm_row__f32_f32_f32");
    CHECK(plan.dispatches.size() == 3);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "group_norm_row__f32_f32_f32_subgroup");
  }
}

}  // namespace vkformer::testing
