// reference/layer_norm and rms_norm.
#include "reference/layer_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "reference/rms_norm.h"

using namespace vkformer;
using reference::Array;
using reference::layer_norm;
using reference::rms_norm;

TEST_SUITE("cpu") {
  TEST_CASE("reference layer_norm: hand-computed row with gain and bias") {
    // Mean 2, biased variance 2/3 + epsilon 1/3 = 1.
    const Array gain = {{3}, {1, 2, 3}};
    const Array bias = {{3}, {10, 20, 30}};
    const Result<Array> y = layer_norm({{1, 3}, {1, 2, 3}}, {1.0 / 3.0, &gain, &bias, nullptr});
    REQUIRE(y.ok());
    CHECK(y->data[0] == doctest::Approx(9.0));
    CHECK(y->data[1] == doctest::Approx(20.0));
    CHECK(y->data[2] == doctest::Approx(33.0));
  }

  TEST_CASE("reference layer_norm: mean 0 and variance 1 without gain and bias") {
    const Result<Array> y = layer_norm({{2, 4}, {1, -2, 7, 3, 1000, 1001, 1005, 999}}, {0.0});
    REQUIRE(y.ok());
    for (int64_t row = 0; row < 2; ++row) {
      double sum = 0.0;
      double squares = 0.0;
      for (int64_t i = 0; i < 4; ++i) {
        sum += (*y)[row * 4 + i];
        squares += (*y)[row * 4 + i] * (*y)[row * 4 + i];
      }
      CHECK(sum == doctest::Approx(0.0).epsilon(1e-12));
      CHECK(squares / 4.0 == doctest::Approx(1.0));
    }
  }

  TEST_CASE("reference layer_norm: the residual is added before") {
    const Array x = {{1, 3}, {0, 5, 1}};
    const Array residual = {{1, 3}, {1, -3, 2}};
    const Array sum = {{1, 3}, {1, 2, 3}};
    const Result<Array> fused = layer_norm(x, {1e-5, nullptr, nullptr, &residual});
    const Result<Array> plain = layer_norm(sum, {1e-5});
    REQUIRE(fused.ok());
    REQUIRE(plain.ok());
    CHECK(fused->data == plain->data);
  }

  TEST_CASE("reference layer_norm: constant rows give the bias, NaN stays in its row") {
    const Array bias = {{2}, {5, 6}};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Result<Array> y = layer_norm({{2, 2}, {3, 3, nan, 1}}, {1e-5, nullptr, &bias, nullptr});
    REQUIRE(y.ok());
    CHECK(y->data[0] == 5.0);
    CHECK(y->data[1] == 6.0);
    CHECK(std::isnan(y->data[2]));
    CHECK(std::isnan(y->data[3]));
  }

  TEST_CASE("reference layer_norm: shape errors") {
    const Array wrong = {{2}, {1, 2}};
    const Array x = {{1, 3}, {1, 2, 3}};
    CHECK_FALSE(layer_norm(x, {1e-5, &wrong, nullptr, nullptr}).ok());
    CHECK_FALSE(layer_norm(x, {1e-5, nullptr, &wrong, nullptr}).ok());
    CHECK_FALSE(layer_norm(x, {1e-5, nullptr, nullptr, &wrong}).ok());
    CHECK_FALSE(layer_norm({{}, {1}}).ok());
  }

  TEST_CASE("reference rms_norm: hand-computed row") {
    // Mean square (9 + 16) / 2 = 12.5, plus 12.5 = 25, root 5.
    const Array gain = {{2}, {5, 10}};
    const Result<Array> y = rms_norm({{2}, {3, -4}}, {12.5, &gain});
    REQUIRE(y.ok());
    CHECK(y->data[0] == doctest::Approx(3.0));
    CHECK(y->data[1] == doctest::Approx(-8.0));
  }

  TEST_CASE("reference rms_norm: without epsilon the scale of x does not matter") {
    const Result<Array> small = rms_norm({{3}, {1, 2, 3}}, {0.0});
    const Result<Array> large = rms_norm({{3}, {100, 200, 300}}, {0.0});
    REQUIRE(small.ok());
    REQUIRE(large.ok());
    for (int64_t i = 0; i < 3; ++i) CHECK((*small)[i] == doctest::Approx((*large)[i]));
    const Result<Array> zero = rms_norm({{2}, {0, 0}});
    REQUIRE(zero.ok());
    CHECK(zero->data == std::vector<double>{0, 0});
  }

  TEST_CASE("reference rms_norm: shape errors") {
    const Array wrong = {{2}, {1, 2}};
    CHECK_FALSE(rms_norm({{3}, {1, 2, 3}}, {1e-6, &wrong}).ok());
    CHECK_FALSE(rms_norm({{}, {1}}).ok());
  }
}
