// Shifted windows (Liu et al., 2021): where each token of a grid is once the grid is padded to
// whole windows, rolled, and cut. They are index lists of the operator gather_rows, with ~0 for
// padding, which becomes zeros. All of it is made on the host, once per pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/blocks/picture_embedding.h"

namespace vkformer {

struct WindowGrid {
  GridSize tokens;
  int64_t window = 1;  // tokens a side
  int64_t shift = 0;   // tokens by which the padded grid is rolled up and left

  int64_t rows() const { return (tokens.height + window - 1) / window; }
  int64_t columns() const { return (tokens.width + window - 1) / window; }
  int64_t windows() const { return rows() * columns(); }
  int64_t area() const { return window * window; }
};

// Tokens (B, height * width) by window, row by row -> (B * windows, area).
std::vector<uint32_t> window_rows(const WindowGrid& grid, int64_t batch);
// The way back: tokens of the windows (B * windows, area), rolled back and cropped -> (B, height *
// width).
std::vector<uint32_t> unwindow_rows(const WindowGrid& grid, int64_t batch);

// Patch merging: the 2 x 2 tokens that become one -> (B, ceil(height / 2) * ceil(width / 2), 4).
// Their order by parity of (row, column) is (0, 0), (1, 0), (0, 1), (1, 1).
std::vector<uint32_t> merge_rows(const GridSize& tokens, int64_t batch);

// What is added to scores inside windows -> (n, H, area, area), n = windows of a shifted grid, else
// 1. It is the learned bias of each pair's relative position and, in a shifted grid, -100 for pairs
// that were not neighbors before rolling. `index` is swin_relative_index (area, area), `table` has
// ((2 window - 1)^2, H) values.
std::vector<float> window_biases(const WindowGrid& grid, std::span<const uint32_t> index,
                                 std::span<const float> table, int64_t heads);

}  // namespace vkformer
