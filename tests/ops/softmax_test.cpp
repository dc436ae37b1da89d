#include "ops/softmax.h"

#include <array>
#include <optional>

#include "reference/softmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct SoftmaxCase {
  Array x;  // (B, H, T, S)
  double temperature = 1;
  std::optional<Tensor> key_mask;
  std::optional<Array> bias;
  bool causal = false;
  int32_t causal_offset = 0;
};

PreparedOperator prepare_softmax(const SoftmaxCase& c) {
  ScoreTermsInput input;
  input.key_mask = c.key_mask;
  if (c.bias) input.bias = reference::to_tensor(*c.bias);
  const Shape& s = c.x.shape;
  auto terms = pack_score_terms(input, std::array<int64_t, 4>{s[0], s[1], s[2], s[3]});
  REQUIRE(terms.ok());
  SoftmaxAttrs attrs{static_cast<float>(c.temperature), terms->params};
  attrs.terms.causal_offset = c.causal_offset;
  if (c.causal) attrs.terms.flags |= VKF_TERM_CAUSAL;
  PreparedOperator op;
  const TensorId x = op.bind("x", reference::to_tensor(c.x));
  const TensorId words = op.bind("terms", terms->words);
  const auto y = add_softmax(op.graph, x, words, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_softmax(const SoftmaxCase& c) {
  reference::SoftmaxOptions options;
  options.temperature = static_cast<float>(c.temperature);
  Array key_mask;
  if (c.key_mask) {
    key_mask = reference::from_tensor(*c.key_mask).value();
    options.masks.key_mask = &key_mask;
  }
  if (c.bias) options.bias = &*c.bias;
  options.masks.causal = c.causal;
  options.masks.causal_offset = c.causal_offset;
  return reference::softmax(c.x, options).value();
}

void check_softmax_case(const SoftmaxCase& c) {
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(run_poisoned(device, prepare_softmax(c)).at("y"), expected_softmax(c),
                tolerance_for(DType::kF32, c.x.dim(-1)));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("softmax gives zeros for rows without an allowed key, whatever they hold") {
    SoftmaxCase c{random_array({2, 2, 5, 9}, 1)};
    c.key_mask = random_mask({2, 9}, 2);
    for (size_t j = 0; j < 9; ++j) c.key_mask->bytes[j] = std::byte{0};
    c.x[3] = kNan;
    c.x[4] = kInfinity;
    check_softmax_case(c);
    SoftmaxCase infinite{reference::filled({1, 1, 2, 5}, -kInfinity)};
    check_softmax_case(infinite);
  }

  TEST_CASE("softmax survives extreme temperatures and values") {
    SoftmaxCase c{random_array({1, 1, 9, 31}, 8, 3)};
    for (double temperature : {1e-6, 1e-20, 1e6, 1e20}) {
      c.temperature = temperature;
      check_softmax_case(c);
    }
    c.temperature = 1;
    c.x = random_array({1, 1, 9, 31}, 9, 1e30);
    check_softmax_case(c);
    c.x = random_array({1, 1, 1, 31}, 10, 1, 1e4);
    c.bias = random_array({1, 1, 1, 31}, 11, 1e4);
    check_softmax_case(c);
  }

  TEST_CASE("softmax fills the allowed part of a row with NaN where one is NaN or +inf") {
    for (const TierDevice& device : tier_devices()) {
      for (float special : {kNan, kInfinity}) {
        SoftmaxCase c{random_array({1, 1, 3, 33}, 1)};
        c.causal = true;
        c.causal_offset = 30;
        c.x[33 + 4] = special;
        const auto y = run_poisoned(device, prepare_softmax(c)).at("y").to_floats().value();
        for (size_t j = 0; j < 33; ++j) {
          CHECK(std::isfinite(y[j]));
          CHECK(std::isnan(y[33 + j]) == (j <= 31));
          CHECK(std::isfinite(y[66 + j]));
        }
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("softmax refuses inputs that do not fit") {
    const TensorDesc x = floats_desc({1, 2, 3, 4});
    const TensorDesc terms{"terms", DType::kU32, {1}};
    check_error(check_softmax(floats_desc({3, 4}), terms, {}), "softmax", "(3, 4)");
    check_error(check_softmax(floats_desc({1, 1, 1, 3, 4}), terms, {}), "softmax", "(B, H, T, S)");
    check_error(check_softmax(x, floats_desc({1}), {}), "softmax", "U32");
    for (float bad : {0.0f, -1.0f, kNan, kInfinity, 1e-35f}) {
      SoftmaxAttrs attrs;
      attrs.temperature = bad;
      check_error(check_softmax(x, terms, attrs), "softmax", "temperature");
    }
    SoftmaxAttrs outside;
    outside.terms.bias_offset = 0;
    check_error(check_softmax(x, terms, outside), "softmax", "bias");
    outside = {};
    outside.terms.key_mask_offset = 1;
    check_error(check_softmax(x, terms, outside), "softmax", "key mask");
  }

  TEST_CASE("softmax checks every word of the terms that its shader reads") {
    const TensorDesc x = floats_desc({2, 3, 4, 5});
    const auto check = [&](const ScoreTermsParams& params, int64_t words, const std::string& name) {
      CAPTURE(name);
      SoftmaxAttrs attrs;
      attrs.terms = params;
      CHECK(check_softmax(x, {"terms", DType::kU32, {words}}, attrs).ok());
      check_error(check_softmax(x, {"terms", DType::kU32, {words - 1}}, attrs), "softmax", name);
    };
    ScoreTermsParams slopes = no_score_terms();
    slopes.slopes_offset = 7;
    check(slopes, 7 + 3, "ALiBi slopes");
    // After the slopes, a position of each key of each item.
    slopes.flags = VKF_TERM_KEY_POSITIONS;
    check(slopes, 7 + 3 + 2 * 5, "positions of the keys");
    // The reach, then a column for each head at least.
    slopes.flags = VKF_TERM_DISTANCE;
    check(slopes, 7 + 1 + 3, "bias by distance");
    ScoreTermsParams bias = no_score_terms();
    bias.bias_offset = 2;
    check(bias, 2 + 2 * 3 * 4 * 5, "bias");
    // The number of slices, then one slice at least instead of one for each item.
    bias.flags = VKF_TERM_BIAS_PERIODIC;
    check(bias, 2 + 1 + 3 * 4 * 5, "periodic bias");
    bias.flags |= VKF_TERM_BIAS_ONE_QUERY;
    check(bias, 2 + 1 + 3 * 5, "periodic bias");
    SoftmaxAttrs far;
    far.terms.causal_offset = (1 << 29) + 1;
    check_error(check_softmax(x, {"terms", DType::kU32, {1}}, far), "softmax", "536870913 tokens");
  }

  TEST_CASE("softmax plans one dispatch of the tier's kernel, without aliasing") {
    PreparedOperator op;
    const TensorId terms = op.graph.add_external("terms", DType::kU32, {1});
    TensorId x = op.graph.add_external("x", DType::kF32, {2, 2, 5, 64});
    for (int i = 0; i < 3; ++i) x = add_softmax(op.graph, x, terms, {}).value();
    op.name_output(x, "y");
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "softmax_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 3);
    CHECK(plan.dispatches[0].groups[0] == 20);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "softmax_row__f32_none_f32_subgroup");
  }
}

}  // namespace vkformer::testing
