// grid_distances: attention with decomposed relative positions (Li et al., 2022, "MViTv2"; Kirillov
// et al., 2023) as plain attention over wider heads. The score of a query and a key of a grid is
//
//   scale q.k + q.rows[query row - key row + H - 1] + q.columns[query column - key column + W - 1]
//
// which is q'.k' of
//
//   q' = [scale q | q.rows[query row - r + H - 1] for all r | q.columns[...] for all c]
//   k' = [k | 1 at the key's row, else 0 | 1 at its column, else 0]
//
//   qkv (B, T, 3 * heads * E), T = H * W tokens row by row, table (2 H - 1 + 2 W - 1, E), rows
//   first
//       -> y (B, T, heads * (3 E + 2 H + 2 W)): [q' | k' | v], heads side by side
#pragma once

#include "ops/op.h"

namespace vkformer {

struct GridDistancesAttrs {
  uint32_t heads = 1;
  uint32_t height = 1;  // H, tokens
  uint32_t width = 1;   // W, tokens
  float scale = 1.0f;   // of q.k
};

// E of q' and k'.
inline int64_t grid_distance_width(int64_t head_width, const GridDistancesAttrs& attrs) {
  return head_width + attrs.height + attrs.width;
}

// The output's description, or why the inputs do not fit: qkv (B, T, 3 * heads * E), table
// (2 H - 1 + 2 W - 1, E).
Result<TensorDesc> check_grid_distances(const TensorDesc& qkv, const TensorDesc& table,
                                        const GridDistancesAttrs& attrs);

// Adds the node to the graph and returns y (B, T, heads * (3 E + 2 H + 2 W)).
Result<TensorId> add_grid_distances(Graph& graph, TensorId qkv, TensorId table,
                                    const GridDistancesAttrs& attrs);

Status lower_grid_distances(LowerContext& context, const Node& node);

}  // namespace vkformer
