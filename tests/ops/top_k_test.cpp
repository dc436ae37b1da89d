#include "ops/top_k.h"

#include "reference/top_k.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

PreparedOperator prepare_top_k(const Array& x, uint32_t k) {
  PreparedOperator op;
  const auto y = add_top_k(op.graph, op.bind("x", reference::to_tensor(x)), {k});
  REQUIRE(y.ok());
  op.name_output(*y, "y");
  return op;
}

void check_top_k_case(const Array& x, uint32_t k) {
  const reference::TopK expected = reference::top_k(x, k).value();
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const std::vector<uint32_t> words = words_of(run_poisoned(device, prepare_top_k(x, k)).at("y"));
    REQUIRE(words.size() == 2 * expected.indices.data.size());
    size_t wrong = 0;
    for (size_t i = 0; i < words.size() / 2; ++i) {
      float value = 0;
      std::memcpy(&value, &words[2 * i], 4);
      const double wanted = expected.values.data[i];
      const bool same = std::isnan(wanted) ? std::isnan(value) : value == wanted;
      if (!same || words[2 * i + 1] != expected.indices.data[i]) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("top_k takes rows that are a vocabulary") {
    check_top_k_case(random_array({2, 30522}, 3), 10);
    // Enough passes over a long row that an invocation's loops add up to more than llvmpipe lets
    // one have.
    check_top_k_case(random_array({2, 50257}, 4), 40);
  }

  TEST_CASE("top_k finds the best where one invocation has them all") {
    Array x = random_array({2, 5000}, 5);
    for (int64_t i = 0; i < 20; ++i) {
      x[128 * i] = 1000.0 + static_cast<double>(i * 7 % 20);
      x[5000 + 3 + 128 * i] = i % 4 == 0 ? kNan : 1000.0;
    }
    check_top_k_case(x, 12);
    x[5000] = kNan;
    check_top_k_case(x, 24);
  }

  TEST_CASE("top_k orders equals by index and puts NaN first") {
    Array x = reference::filled({4, 65}, 1.0);
    x[10] = 2.0;
    x[65 + 3] = -0.0;
    x[65 + 4] = kNan;
    x[65 + 64] = kNan;
    for (int64_t i = 2 * 65; i < 3 * 65; ++i) x[i] = -kInfinity;
    x[3 * 65 + 2] = kInfinity;
    check_top_k_case(x, 64);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("top_k refuses inputs that do not fit") {
    check_error(check_top_k(floats_desc({}), {1}), "top_k", "()");
    check_error(check_top_k(floats_desc({2, 8}), {9}), "top_k", "k is 9");
    check_error(check_top_k(floats_desc({2, 8}), {0}), "top_k", "k is 0");
    check_error(check_top_k(floats_desc({2, 100}), {65}), "top_k", "64");
  }

  TEST_CASE("top_k plans one dispatch of the tier's kernel, without aliasing") {
    const PreparedOperator op = prepare_top_k(random_array({5, 64}, 1), 3);
    const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "top_k_row__f32_none_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    plan_with_kernel(op.graph, Tier::kSubgroup, "top_k_row__f32_none_f32_subgroup");
  }
}

}  // namespace vkformer::testing
