// reference/argmax and top_k.
#include "reference/top_k.h"

#include <doctest/doctest.h>

#include <cmath>

#include "reference/argmax.h"

using namespace vkformer;
using reference::argmax;
using reference::Array;
using reference::top_k;
using reference::TopK;

TEST_SUITE("cpu") {
  TEST_CASE("reference argmax: first index on ties, first NaN wins") {
    const Result<Array> y =
        argmax({{4, 3}, {1, 3, 3, -INFINITY, -INFINITY, -INFINITY, 9, NAN, NAN, -1, -2, 0}});
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{4});
    CHECK(y->data == std::vector<double>{1, 0, 1, 2});
  }

  TEST_CASE("reference argmax: a row gives a scalar, an empty row an error") {
    const Result<Array> y = argmax({{2}, {0, 1}});
    REQUIRE(y.ok());
    CHECK(y->shape.empty());
    CHECK(y->data == std::vector<double>{1});
    CHECK_FALSE(argmax({{2, 0}, {}}).ok());
    CHECK_FALSE(argmax({{}, {1}}).ok());
  }

  TEST_CASE("reference top_k: values descend, indices ascend on ties") {
    const Result<TopK> y = top_k({{2, 4}, {1, 5, 5, 2, 0, 0, 0, NAN}}, 3);
    REQUIRE(y.ok());
    CHECK(y->indices.shape == Shape{2, 3});
    CHECK(y->indices.data == std::vector<double>{1, 2, 3, 3, 0, 1});
    CHECK(y->values.data[0] == 5);
    CHECK(y->values.data[2] == 2);
    CHECK(std::isnan(y->values.data[3]));
  }

  TEST_CASE("reference top_k: k = 1 is argmax, k = V a permutation") {
    const Array x = {{1, 5}, {3, NAN, -1, NAN, 7}};
    const Result<TopK> one = top_k(x, 1);
    const Result<Array> best = argmax(x);
    REQUIRE(one.ok());
    REQUIRE(best.ok());
    CHECK(one->indices.data == best->data);
    const Result<TopK> all = top_k(x, 5);
    REQUIRE(all.ok());
    CHECK(all->indices.data == std::vector<double>{1, 3, 4, 0, 2});
  }

  TEST_CASE("reference top_k: k out of range is an error") {
    const Array x = {{3}, {1, 2, 3}};
    CHECK_FALSE(top_k(x, 0).ok());
    CHECK_FALSE(top_k(x, 4).ok());
    CHECK_FALSE(top_k(x, -1).ok());
    CHECK_FALSE(top_k({{}, {1}}, 1).ok());
  }
}
