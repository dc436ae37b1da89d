// reference/unfold.
#include "reference/unfold.h"

#include <doctest/doctest.h>

using namespace vkformer;
using reference::Array;
using reference::unfold;
using reference::WindowOptions;

TEST_SUITE("cpu") {
  TEST_CASE("reference unfold: rows are positions, columns channel, then y, then x") {
    const Array x = {{1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
    const Result<Array> whole = unfold(x, {.kernel_height = 2, .kernel_width = 2});
    REQUIRE(whole.ok());
    CHECK(whole->shape == Shape{1, 1, 8});
    CHECK(whole->data == x.data);
    const Result<Array> rows = unfold(x, {.kernel_width = 2});
    REQUIRE(rows.ok());
    CHECK(rows->shape == Shape{1, 2, 4});
    CHECK(rows->data == std::vector<double>{1, 2, 5, 6, 3, 4, 7, 8});
  }

  TEST_CASE("reference unfold: zeros outside, strides, and outputs beyond the picture") {
    const Array x = {{1, 1, 1, 3}, {1, 2, 3}};
    const WindowOptions stem{.kernel_width = 3, .stride_width = 2, .pad_left = 1};
    const Result<Array> padded = unfold(x, stem);
    REQUIRE(padded.ok());
    CHECK(padded->shape == Shape{1, 2, 3});
    CHECK(padded->data == std::vector<double>{0, 1, 2, 2, 3, 0});
    WindowOptions given = stem;
    given.out_width = 3;
    const Result<Array> beyond = unfold(x, given);
    REQUIRE(beyond.ok());
    CHECK(beyond->data == std::vector<double>{0, 1, 2, 2, 3, 0, 0, 0, 0});
  }

  TEST_CASE("reference unfold: shape errors, and the other order of channels") {
    CHECK_FALSE(unfold({{2, 2}, {1, 2, 3, 4}}, {}).ok());
    CHECK_FALSE(unfold({{1, 1, 1, 1}, {1}}, {.stride_width = 0}).ok());
    const Array last = reference::channels_last({{1, 2, 1, 2}, {1, 2, 3, 4}});
    CHECK(last.shape == Shape{1, 1, 2, 2});
    CHECK(last.data == std::vector<double>{1, 3, 2, 4});
  }
}
