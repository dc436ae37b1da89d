#include "ops/lsh_sort.h"

#include "reference/lsh_sort.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

struct LshSortCase {
  Array buckets;  // (B, H, R, S)
  uint32_t count = 1;
};

LshSortCase make_lsh_sort_case(const Shape& shape, uint32_t count, uint32_t seed) {
  LshSortCase c{reference::filled(shape, 0.0), count};
  std::mt19937 engine(seed);
  std::uniform_int_distribution<uint32_t> bucket(0, count - 1);
  for (int64_t i = 0; i < c.buckets.size(); ++i) {
    const auto round = static_cast<uint32_t>(i / shape[3] % shape[2]);
    c.buckets[i] = bucket(engine) + round * count;
  }
  return c;
}

PreparedOperator prepare_lsh_sort(const LshSortCase& c) {
  PreparedOperator op;
  const std::vector<uint32_t> words(c.buckets.data.begin(), c.buckets.data.end());
  const auto y = add_lsh_sort(op.graph, op.bind("buckets", word_tensor(words, c.buckets.shape)),
                              {.buckets = c.count});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

void check_lsh_sort_case(const LshSortCase& c) {
  const Array expected = reference::lsh_sort(c.buckets).value();
  const std::vector<uint32_t> wanted(expected.data.begin(), expected.data.end());
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    CHECK(words_of(run_poisoned(device, prepare_lsh_sort(c)).at("y")) == wanted);
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("lsh_sort is the stable sort, for every length and number of buckets") {
    for (int64_t tokens : {1, 2, 31, 127, 128, 129, 1000}) {
      check_lsh_sort_case(make_lsh_sort_case({2, 2, 2, tokens}, 13, static_cast<uint32_t>(tokens)));
    }
    // One pass to four, at their edges.
    for (uint32_t count : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 4097u}) {
      check_lsh_sort_case(make_lsh_sort_case({1, 2, 3, 257}, count, count));
    }
  }

  TEST_CASE("lsh_sort keeps the order of equal buckets, and sorts a reversed row") {
    LshSortCase c = make_lsh_sort_case({1, 1, 1, 300}, 1, 1);
    check_lsh_sort_case(c);
    c.count = 300;
    for (int64_t i = 0; i < 300; ++i) c.buckets[i] = static_cast<double>(299 - i);
    check_lsh_sort_case(c);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("lsh_sort refuses inputs that do not fit") {
    check_error(check_lsh_sort(floats_desc({1, 1, 1, 4}), {4}), "lsh_sort", "U32");
    check_error(check_lsh_sort({"b", DType::kU32, {1, 4}}, {4}), "lsh_sort", "(1, 4)");
    check_error(check_lsh_sort({"b", DType::kU32, {1, 1, 0, 4}}, {4}), "lsh_sort", "(1, 1, 0, 4)");
    check_error(check_lsh_sort({"b", DType::kU32, {1, 1, 1, 4}}, {0}), "lsh_sort", "0 buckets");
  }

  TEST_CASE("lsh_sort plans a pass for every four bits, without aliasing") {
    for (const auto& [count, passes] : {std::pair{16u, 1u}, {17u, 2u}, {257u, 3u}}) {
      const PreparedOperator op = prepare_lsh_sort(make_lsh_sort_case({1, 2, 2, 40}, count, 1));
      const Plan plan = plan_with_kernel(op.graph, Tier::kBaseline, "lsh_sort_unit__u32_none_u32");
      CHECK(plan.dispatches.size() == passes);
      check_no_aliasing(plan);
    }
  }
}

}  // namespace vkformer::testing
