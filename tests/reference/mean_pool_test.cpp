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

  TEST_CASE("reference mean_pool: shape errors") {
    const Array mask = {{1, 2}, {1, 1}};
    CHECK_FALSE(mean_pool({{2, 2}, {1, 2, 3, 4}}).ok());
    CHECK_FALSE(mean_pool({{1, 3, 1}, {1, 2, 3}}, {false, &mask}).ok());
  }
}
