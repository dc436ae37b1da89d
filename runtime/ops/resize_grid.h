// resize_grid: bilinear interpolation of a grid of tokens at another size, as torch's interpolate
// does it without antialiasing.
//
//   x (B, H * W, C) -> y (B, OH * OW, C), tokens row by row
//   source of row i: i (H - 1) / (OH - 1) with kAligned, 2 i + 1/2 with kHalves, else
//   max(0, (i + 1/2) H / OH - 1/2), and none after row H - 1
//   columns alike; a source between two rows or columns is their mean, weighted by distance
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ResizeGridAttrs {
  uint32_t height = 1;      // H, tokens
  uint32_t width = 1;       // W, tokens
  uint32_t out_height = 1;  // OH, tokens
  uint32_t out_width = 1;   // OW, tokens
  // kAligned: the first and the last rows and columns stay where they are. kHalves: means of 2 x 2
  // tokens, at the ends of odd sides of those that there are. torch's average pooling gives the
  // same with ceil_mode. OH is H / 2, rounded up.
  enum class Corners : uint8_t { kCenters, kAligned, kHalves } corners = Corners::kCenters;
};

// The output's description, or why the grid does not fit x (B, H * W, C).
Result<TensorDesc> check_resize_grid(const TensorDesc& x, const ResizeGridAttrs& attrs);

// Adds y = resize_grid(x) to the graph and returns y (B, OH * OW, C).
Result<TensorId> add_resize_grid(Graph& graph, TensorId x, const ResizeGridAttrs& attrs);

Status lower_resize_grid(LowerContext& context, const Node& node);

}  // namespace vkformer
