#include "model/blocks/shifted_windows.h"

#include <doctest/doctest.h>

#include "ops/relative_positions.h"

namespace vkformer::testing {
namespace {

using List = std::vector<uint32_t>;
constexpr uint32_t kPad = ~0u;

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("windows: a grid is cut row by row, with padding at the right and the bottom") {
    const WindowGrid even{.tokens = {2, 4}, .window = 2};
    CHECK(even.windows() == 2);
    CHECK(window_rows(even, 1) == List{0, 1, 4, 5, 2, 3, 6, 7});
    CHECK(window_rows(even, 2) == List{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
    const WindowGrid odd{.tokens = {1, 3}, .window = 2};
    CHECK(odd.windows() == 2);
    CHECK(window_rows(odd, 1) == List{0, 1, kPad, kPad, 2, kPad, kPad, kPad});
    CHECK(unwindow_rows(odd, 1) == List{0, 1, 4});
  }

  TEST_CASE("windows: a shifted grid is rolled up and left, padding included") {
    const WindowGrid grid{.tokens = {3, 3}, .window = 2, .shift = 1};
    // Rolled rows of the padded grid: 4 5 . 3 / 7 8 . 6 / . . . . / 1 2 . 0.
    CHECK(window_rows(grid, 1) ==
          List{4, 5, 7, 8, kPad, 3, kPad, 6, kPad, kPad, 1, 2, kPad, kPad, kPad, 0});
  }

  TEST_CASE("windows: the way back finds every token where the way there put it") {
    for (const GridSize& tokens : {GridSize{1, 1}, {7, 7}, {5, 9}, {8, 4}, {13, 6}}) {
      for (int64_t window : {1, 2, 3, 5}) {
        for (int64_t shift : {int64_t{0}, window / 2}) {
          const WindowGrid grid{.tokens = tokens, .window = window, .shift = shift};
          const List there = window_rows(grid, 3);
          const List back = unwindow_rows(grid, 3);
          REQUIRE(there.size() == static_cast<size_t>(3 * grid.windows() * grid.area()));
          REQUIRE(back.size() == static_cast<size_t>(3 * tokens.count()));
          for (size_t t = 0; t < back.size(); ++t) CHECK(there[back[t]] == t);
        }
      }
    }
  }

  TEST_CASE("merging: four tokens by column, then row, zeros where the grid is odd") {
    CHECK(merge_rows({2, 4}, 1) == List{0, 4, 1, 5, 2, 6, 3, 7});
    CHECK(merge_rows({3, 1}, 2) == List{0, 1, kPad, kPad, 2, kPad, kPad, kPad,  //
                                        3, 4, kPad, kPad, 5, kPad, kPad, kPad});
  }

  TEST_CASE("biases: one slice without a shift, and -100 between regions with one") {
    const auto index = swin_relative_index(2);
    REQUIRE(index.ok());
    std::vector<float> table(9 * 2);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
    const WindowGrid plain{.tokens = {4, 4}, .window = 2};
    const std::vector<float> once = window_biases(plain, *index, table, 2);
    REQUIRE(once.size() == 2 * 16);
    for (size_t h = 0; h < 2; ++h) {
      for (size_t pair = 0; pair < 16; ++pair) {
        CHECK(once[h * 16 + pair] == table[(*index)[pair] * 2 + h]);
      }
    }
    const WindowGrid shifted{.tokens = {4, 4}, .window = 2, .shift = 1};
    const std::vector<float> biases = window_biases(shifted, *index, table, 2);
    REQUIRE(biases.size() == 4 * 32);
    for (size_t i = 0; i < 32; ++i) {
      CHECK(biases[i] == once[i]);  // the first window holds old neighbors only
      const size_t query = i % 16 / 4;
      const size_t key = i % 4;
      CHECK(biases[32 + i] == (query % 2 == key % 2 ? once[i] : once[i] - 100.0f));
      CHECK(biases[64 + i] == (query / 2 == key / 2 ? once[i] : once[i] - 100.0f));
      CHECK(biases[96 + i] == (query == key ? once[i] : once[i] - 100.0f));
    }
  }
}

}  // namespace vkformer::testing
