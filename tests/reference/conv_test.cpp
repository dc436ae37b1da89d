// reference/conv.
#include "reference/conv.h"

#include <doctest/doctest.h>

using namespace vkformer;
using reference::Array;
using reference::conv;

TEST_SUITE("cpu") {
  TEST_CASE("reference conv: cross-correlation with a bias, zeros outside") {
    const Array x = {{1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}};
    const Array weight = {{1, 1, 1, 2}, {10, 1}};
    const Array bias = {{1}, {100}};
    const Result<Array> y = conv(x, weight, {.bias = &bias});
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{1, 1, 2, 2});
    CHECK(y->data == std::vector<double>{112, 123, 145, 156});
    const Result<Array> padded =
        conv(x, weight, {.window = {.stride_width = 2, .pad_left = 1, .out_height = 1}});
    REQUIRE(padded.ok());
    CHECK(padded->data == std::vector<double>{1, 23});
  }

  TEST_CASE("reference conv: an output channel sees the inputs of its group only") {
    const Array x = {{1, 4, 1, 1}, {1, 2, 3, 4}};
    const Array pairs = {{2, 2, 1, 1}, {1, 10, 1, 10}};
    const Result<Array> grouped = conv(x, pairs, {.groups = 2});
    REQUIRE(grouped.ok());
    CHECK(grouped->data == std::vector<double>{21, 43});
    const Array twice = {{8, 1, 1, 1}, {1, 2, 1, 2, 1, 2, 1, 2}};
    const Result<Array> depthwise = conv(x, twice, {.groups = 4});
    REQUIRE(depthwise.ok());
    CHECK(depthwise->data == std::vector<double>{1, 2, 2, 4, 3, 6, 4, 8});
  }

  TEST_CASE("reference conv equals the product of unfolded rows and the flat weight") {
    Array x = {{2, 3, 5, 4}, {}};
    for (int i = 0; i < 120; ++i) x.data.push_back((i * 37 % 11) - 5);
    Array weight = {{2, 3, 3, 2}, {}};
    for (int i = 0; i < 36; ++i) weight.data.push_back((i * 17 % 7) - 3);
    const reference::WindowOptions window{
        .kernel_height = 3, .kernel_width = 2, .stride_height = 2, .pad_top = 1, .pad_left = 1};
    const Array y = conv(x, weight, {.window = window}).value();
    const Array rows = reference::unfold(x, window).value();
    const int64_t positions = rows.dim(1);
    REQUIRE(y.size() == 2 * 2 * positions);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t row = i / (2 * positions) * positions + i % positions;
      const int64_t channel = i / positions % 2;
      double sum = 0;
      for (int64_t k = 0; k < 18; ++k) sum += rows[row * 18 + k] * weight[channel * 18 + k];
      CHECK(y[i] == sum);
    }
  }

  TEST_CASE("reference conv: shape errors") {
    const Array x = {{1, 4, 1, 1}, {1, 2, 3, 4}};
    CHECK_FALSE(conv(x, {{1, 3, 1, 1}, {1, 2, 3}}).ok());
    CHECK_FALSE(conv(x, {{3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}}, {.groups = 2}).ok());
    const Array bias = {{2}, {1, 2}};
    CHECK_FALSE(conv(x, {{1, 4, 1, 1}, {1, 2, 3, 4}}, {.bias = &bias}).ok());
  }
}
