// resize_grid: bilinear interpolation of a grid at another size.
// x (B, H * W, C) -> (B, OH * OW, C). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct GridOptions {
  int64_t height = 1;  // H
  int64_t width = 1;   // W
  int64_t out_height = 1;
  int64_t out_width = 1;
  bool aligned = false;  // the corners stay where they are
  bool halves = false;   // means of 2 x 2
};

// The source of row i is `i (H - 1) / (OH - 1)` where aligned, `2 i + 1/2` where halved, else
// `max(0, (i + 1/2) H / OH - 1/2)`.
Result<Array> resize_grid(const Array& x, const GridOptions& options);

}  // namespace vkformer::reference
