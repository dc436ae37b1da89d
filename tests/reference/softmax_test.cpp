// reference/softmax, log_softmax and the masks they share with attention.
#include "reference/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "reference/log_softmax.h"

using namespace vkformer;
using reference::Array;
using reference::MaskOptions;
using reference::softmax;
using reference::SoftmaxOptions;

namespace {

// What the masks allow for one batch row and head.
std::vector<double> pattern(int64_t queries, int64_t keys, const MaskOptions& masks) {
  const Result<Array> allowed = reference::allowed_pairs({1, 1, queries, keys}, masks, "test");
  return allowed ? allowed->data : std::vector<double>{};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference softmax: hand-computed rows that sum to 1") {
    const Result<Array> y = softmax({{1, 1, 2, 2}, {0.0, std::log(3.0), 1000.0, 1000.0}});
    REQUIRE(y.ok());
    CHECK(y->data[0] == doctest::Approx(0.25));
    CHECK(y->data[1] == doctest::Approx(0.75));
    CHECK(y->data[2] == 0.5);
    CHECK(y->data[3] == 0.5);
  }

  TEST_CASE("reference softmax: temperature divides the scores, not the bias") {
    const Array bias = {{2}, {0.0, std::log(2.0)}};
    SoftmaxOptions options;
    options.temperature = 0.5;
    options.bias = &bias;
    const Result<Array> y = softmax({{1, 2}, {std::log(2.0), 0.0}}, options);
    REQUIRE(y.ok());
    // exp(2 ln 2) = 4 against exp(ln 2) = 2.
    CHECK(y->data[0] == doctest::Approx(4.0 / 6.0));
    CHECK(y->data[1] == doctest::Approx(2.0 / 6.0));
  }

  TEST_CASE("reference softmax: rows without a key are zeros, masked keys exactly 0") {
    const Array key_mask = {{2, 3}, {1, 0, 1, 0, 0, 0}};
    SoftmaxOptions options;
    options.masks.key_mask = &key_mask;
    const Result<Array> y = softmax({{2, 1, 1, 3}, {1, NAN, 1, 1, 2, 3}}, options);
    REQUIRE(y.ok());
    CHECK(y->data == std::vector<double>{0.5, 0, 0.5, 0, 0, 0});
    const Array bias = {{1}, {-INFINITY}};
    options = {};
    options.bias = &bias;
    const Result<Array> only_minus_infinity = softmax({{1, 2}, {1, 2}}, options);
    REQUIRE(only_minus_infinity.ok());
    CHECK(only_minus_infinity->data == std::vector<double>{0, 0});
  }

  TEST_CASE("reference softmax: NaN reaches the allowed keys of its row only") {
    SoftmaxOptions options;
    options.masks.causal = true;
    const Result<Array> y = softmax({{2, 2}, {1, NAN, NAN, 1}}, options);
    REQUIRE(y.ok());
    CHECK(y->data[0] == 1.0);
    CHECK(y->data[1] == 0.0);
    CHECK(std::isnan(y->data[2]));
    CHECK(std::isnan(y->data[3]));
  }

  TEST_CASE("reference masks: causal with offset") {
    MaskOptions masks;
    masks.causal = true;
    CHECK(pattern(2, 3, masks) == std::vector<double>{1, 0, 0, 1, 1, 0});
    masks.causal_offset = 1;
    CHECK(pattern(2, 3, masks) == std::vector<double>{1, 1, 0, 1, 1, 1});
    masks.causal_offset = -1;
    CHECK(pattern(2, 3, masks) == std::vector<double>{0, 0, 0, 1, 0, 0});
  }

  TEST_CASE("reference masks: windows") {
    MaskOptions masks;
    masks.window_left = 1;
    masks.window_right = 0;
    CHECK(pattern(3, 3, masks) == std::vector<double>{1, 0, 0, 1, 1, 0, 0, 1, 1});
    masks.window_left.reset();
    CHECK(pattern(3, 3, masks) == std::vector<double>{1, 0, 0, 1, 1, 0, 1, 1, 1});
    masks.window_left = 0;
    masks.window_right.reset();
    CHECK(pattern(3, 3, masks) == std::vector<double>{1, 1, 1, 0, 1, 1, 0, 0, 1});
    masks.window_right = 0;
    masks.causal_offset = 1;
    CHECK(pattern(1, 3, masks) == std::vector<double>{0, 1, 0});
    masks.causal_offset = std::numeric_limits<int64_t>::min();
    CHECK(pattern(1, 2, masks) == std::vector<double>{0, 0});
  }

  TEST_CASE("reference masks: global lifts the window but not the padding") {
    const Array global = {{1, 3}, {1, 0, 0}};
    const Array key_mask = {{1, 3}, {1, 1, 0}};
    MaskOptions masks;
    masks.window_left = 0;
    masks.window_right = 0;
    masks.global = &global;
    CHECK(pattern(3, 3, masks) == std::vector<double>{1, 1, 1, 1, 1, 0, 1, 0, 1});
    masks.key_mask = &key_mask;
    CHECK(pattern(3, 3, masks) == std::vector<double>{1, 1, 0, 1, 1, 0, 1, 0, 0});
    CHECK(pattern(2, 3, masks).empty());
  }

  TEST_CASE("reference masks: a free mask broadcasts over batch and heads") {
    const Array mask = {{1, 2, 1, 2}, {1, 0, 0, 1}};
    MaskOptions masks;
    masks.mask = &mask;
    const Result<Array> allowed = reference::allowed_pairs({2, 2, 1, 2}, masks, "test");
    REQUIRE(allowed.ok());
    CHECK(allowed->data == std::vector<double>{1, 0, 0, 1, 1, 0, 0, 1});
    CHECK_FALSE(reference::allowed_pairs({2, 3, 1, 2}, masks, "test").ok());
  }

  TEST_CASE("reference softmax: bad shapes and temperatures are errors") {
    SoftmaxOptions options;
    options.temperature = 0.0;
    CHECK_FALSE(softmax({{1, 2}, {1, 2}}, options).ok());
    options.temperature = NAN;
    CHECK_FALSE(softmax({{1, 2}, {1, 2}}, options).ok());
    CHECK_FALSE(softmax({{}, {1}}).ok());
    CHECK_FALSE(softmax({{1, 1, 1, 1, 1}, {1}}).ok());
    const Array wrong = {{3}, {1, 1, 1}};
    options = {};
    options.bias = &wrong;
    CHECK_FALSE(softmax({{1, 2}, {1, 2}}, options).ok());
    options = {};
    options.masks.key_mask = &wrong;
    CHECK_FALSE(softmax({{1, 2}, {1, 2}}, options).ok());
  }

  TEST_CASE("reference log_softmax: is the logarithm of softmax") {
    const Array x = {{2, 3}, {1, -2, 0.5, 1000, 1001, 999}};
    const Result<Array> logs = reference::log_softmax(x);
    const Result<Array> probabilities = softmax(x);
    REQUIRE(logs.ok());
    REQUIRE(probabilities.ok());
    for (int64_t i = 0; i < x.size(); ++i) {
      CHECK(std::exp((*logs)[i]) == doctest::Approx((*probabilities)[i]));
    }
  }

  TEST_CASE("reference log_softmax: -inf, NaN and shape errors") {
    const Result<Array> y =
        reference::log_softmax({{3, 2}, {-INFINITY, 5, -INFINITY, -INFINITY, NAN, 1}});
    REQUIRE(y.ok());
    CHECK(y->data[0] == -INFINITY);
    CHECK(y->data[1] == 0.0);
    CHECK(y->data[2] == -INFINITY);
    CHECK(y->data[3] == -INFINITY);
    CHECK(std::isnan(y->data[4]));
    CHECK(std::isnan(y->data[5]));
    CHECK_FALSE(reference::log_softmax({{}, {1}}).ok());
    CHECK_FALSE(reference::log_softmax({{2}, {1}}).ok());
  }
}
