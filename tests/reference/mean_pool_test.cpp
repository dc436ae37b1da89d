// reference/mean_pool.
#include "reference/mean_pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace vkformer;
using reference::Array;
using reference::mean_pool;

TEST_SUITE("cpu") {
  TEST_CASE("reference mean_pool: mean over the kept tokens") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Array x = {{2, 3, 2}, {1, 2, 5, 6, nan, nan, 1, 1, 2, 2, 3, 3}};
    const Array mask = {{2, 3}, {1, 1, 0, 0, 0, 0}};
    const Result<Array> y = mean_pool(x, {false, &mask});
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{2, 2});
    CHECK(y->data == std::vector<double>{3, 4, 0, 0});
    const Result<Array> unit = mean_pool(x, {true, &mask});
    REQUIRE(unit.ok());
    CHECK(unit->data[0] == doctest::Approx(0.6));
    CHECK(unit->data[1] == doctest::Approx(0.8));
    CHECK(unit->data[2] == 0.0);
  }

  TEST_CASE("reference mean_pool: without a mask every token counts and NaN propagates") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Result<Array> y = mean_pool({{1, 2, 2}, {1, 3, nan, 5}}, {true, nullptr});
    REQUIRE(y.ok());
    CHECK(std::isnan(y->data[0]));
    const Result<Array> plain = mean_pool({{1, 2, 1}, {1, 3}});
    REQUIRE(plain.ok());
    CHECK(plain->data == std::vector<double>{2});
  }

  TEST_CASE("reference mean_pool: maximum, last token, weights by position, root of the length") {
    using reference::Pool;
    const Array x = {{1, 3, 2}, {1, 8, 4, -2, 9, 9}};
    const Array mask = {{1, 3}, {1, 1, 0}};
    const auto pooled = [&](Pool pool) {
      return mean_pool(x, {.mask = &mask, .pool = pool}).value().data;
    };
    CHECK(pooled(Pool::kMax) == std::vector<double>{4, 8});
    CHECK(pooled(Pool::kLast) == std::vector<double>{4, -2});
    CHECK(pooled(Pool::kWeightedMean) == std::vector<double>{3, 4.0 / 3.0});
    CHECK(pooled(Pool::kMeanSqrtLength)[0] == doctest::Approx(5.0 / std::sqrt(2.0)));
    // Weights go by the place in the row, whatever stands before.
    const Array late = {{1, 3}, {0, 1, 1}};
    CHECK(mean_pool(x, {.mask = &late, .pool = Pool::kWeightedMean}).value().data[0] ==
          doctest::Approx((2.0 * 4.0 + 3.0 * 9.0) / 5.0));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::vector<double>& values :
         {std::vector<double>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}}) {
      const auto y = mean_pool(Array{{1, 3, 1}, values}, {.pool = Pool::kMax});
      CHECK(std::isnan(y.value().data[0]));
    }
  }

  TEST_CASE("reference mean_pool: shape errors") {
    const Array mask = {{1, 2}, {1, 1}};
    CHECK_FALSE(mean_pool({{2, 2}, {1, 2, 3, 4}}).ok());
    CHECK_FALSE(mean_pool({{1, 3, 1}, {1, 2, 3}}, {false, &mask}).ok());
  }
}
