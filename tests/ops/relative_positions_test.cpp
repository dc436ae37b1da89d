#include "ops/relative_positions.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using Direction = T5Buckets::Direction;

__extension__ typedef unsigned __int128 Wide;

// n^steps >= most^t own^(steps - t), in whole numbers of 128 bits.
bool reaches(int64_t n, int64_t own, int64_t most, int64_t steps, int64_t t) {
  Wide left = 1;
  Wide right = 1;
  for (int64_t i = 0; i < steps; ++i) {
    left *= static_cast<Wide>(n);
    right *= static_cast<Wide>(i < t ? most : own);
  }
  return left >= right;
}

// The largest bucket whose bound a distance of n >= own reaches.
int64_t bucket_by_powers(int64_t n, int64_t side, int64_t most) {
  const int64_t own = side / 2;
  if (n < own) return n;
  int64_t t = 0;
  while (t + 1 < side - own && reaches(n, own, most, side - own, t + 1)) ++t;
  return own + t;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("t5_bucket meets its bounds exactly, by whole numbers") {
    for (const auto& [side, bound_most] : std::vector<std::pair<int64_t, int64_t>>{
             {16, 128}, {8, 20}, {8, 4096}, {4, 32}, {6, 100}, {2, 9}, {3, 16}, {5, 54}, {12, 6}}) {
      const auto& most = bound_most;
      if (most <= side / 2) continue;
      const T5Buckets back{Direction::kBack, side, most};
      const T5Buckets both{Direction::kBoth, 2 * side, most};
      REQUIRE(check_t5_buckets(back).ok());
      REQUIRE(check_t5_buckets(both).ok());
      for (int64_t n = 0; n <= most; ++n) {
        CAPTURE(n);
        CAPTURE(most);
        const auto wanted = static_cast<uint32_t>(bucket_by_powers(n, side, most));
        CHECK(t5_bucket(-n, back) == wanted);
        CHECK(t5_bucket(-n, both) == wanted);
        CHECK(t5_bucket(n, back) == 0);
        CHECK(t5_bucket(n, both) == wanted + (n > 0 ? static_cast<uint32_t>(side) : 0u));
      }
      CHECK(t5_bucket(INT64_MIN, back) == side - 1);
      CHECK(t5_bucket(INT64_MAX, both) == 2 * side - 1);
    }
    // 8 (128 / 8)^(t / 8) is whole for t = 2, 4, 6: 16, 32, 64.
    const T5Buckets usual{Direction::kBoth, 32, 128};
    CHECK(t5_bucket(-15, usual) == 9);
    CHECK(t5_bucket(-16, usual) == 10);
    CHECK(t5_bucket(-31, usual) == 11);
    CHECK(t5_bucket(-32, usual) == 12);
    CHECK(t5_bucket(-64, usual) == 14);
    CHECK(t5_bucket(64, usual) == 30);
    CHECK(t5_bucket(128, usual) == 31);
  }

  TEST_CASE("t5_bucket holds for large distances and many buckets") {
    constexpr int64_t kMost = int64_t{1} << 30;
    const T5Buckets large{Direction::kBack, 4, kMost};  // own 2, bound 2 (2^29)^(1/2)
    const auto bound = static_cast<int64_t>(std::ceil(2 * std::sqrt(std::ldexp(1.0, 29))));
    CHECK(t5_bucket(-bound, large) == 3);
    CHECK(t5_bucket(-(bound - 1), large) == 2);
    const T5Buckets many{Direction::kBack, 1 << 20, kMost};
    REQUIRE(check_t5_buckets(many).ok());
    uint32_t last = 0;
    for (int64_t n = 1; n <= kMost; n = n * 3 / 2 + 1) {
      const uint32_t bucket = t5_bucket(-n, many);
      CHECK(bucket >= last);
      CHECK(bucket < 1u << 20);
      last = bucket;
    }
  }

  TEST_CASE("t5_bucket refuses buckets that cannot be") {
    check_error(check_t5_buckets({Direction::kBoth, 3, 128}), "t5_bucket", "3 buckets");
    check_error(check_t5_buckets({Direction::kBack, 1, 128}), "t5_bucket", "1 buckets");
    check_error(check_t5_buckets({Direction::kBack, -8, 128}), "t5_bucket", "-8 buckets");
    check_error(check_t5_buckets({Direction::kBack, 32, 16}), "t5_bucket", "16");
    check_error(check_t5_buckets({Direction::kBack, 32, INT64_MAX}), "t5_bucket", "1073741824");
  }

  TEST_CASE("alibi_slopes are a geometric row, with every second slope of the next beyond") {
    CHECK(alibi_slopes(0).empty());
    CHECK(alibi_slopes(-1).empty());
    CHECK(alibi_slopes(1) == std::vector<double>{std::exp2(-8)});
    CHECK(alibi_slopes(8) == std::vector<double>{1 / 2., 1 / 4., 1 / 8., 1 / 16., 1 / 32., 1 / 64.,
                                                 1 / 128., 1 / 256.});
    const std::vector<double> six = alibi_slopes(6);
    REQUIRE(six.size() == 6);
    for (size_t h = 0; h < 4; ++h) CHECK(six[h] == std::exp2(-2.0 * static_cast<double>(h + 1)));
    CHECK(six[4] == std::exp2(-1));
    CHECK(six[5] == std::exp2(-3));
  }

  TEST_CASE("swin_relative_index numbers the differences of rows and columns") {
    CHECK(swin_relative_index(1).value() == std::vector<uint32_t>{0});
    CHECK(swin_relative_index(2).value() ==
          std::vector<uint32_t>{4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4});
    const std::vector<uint32_t> seven = swin_relative_index(7).value();
    REQUIRE(seven.size() == 49 * 49);
    CHECK(seven[0 * 49 + 48] == 0);
    CHECK(seven[48 * 49 + 0] == 168);
    check_error(swin_relative_index(0), "swin_relative_index", "0 a side");
    check_error(swin_relative_index(1 << 20), "swin_relative_index", "128");
  }
}

}  // namespace vkformer::testing
