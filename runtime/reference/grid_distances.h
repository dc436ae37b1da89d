// grid_distances: queries, keys and values of attention with decomposed relative positions.
// qkv (B, H * W, 3 * heads * E), table (2 H - 1 + 2 W - 1, E)
//     -> (B, H * W, heads * (3 E + 2 H + 2 W)).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct GridDistanceOptions {
  int64_t heads = 1;
  int64_t height = 1;
  int64_t width = 1;
  double scale = 1.0;
};

Result<Array> grid_distances(const Array& qkv, const Array& table,
                             const GridDistanceOptions& options);

}  // namespace vkformer::reference
