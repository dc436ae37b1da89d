// head_norm: normalizes heads inside rows, such as the queries and keys of a merged [q | k | v]
// row (Henry et al., 2020, "Query-Key Normalization").
//
//   RMS:      y = h / sqrt(mean(h^2) + epsilon) * gain
//   centered: y = (h - mean h) / sqrt(variance h + epsilon) * gain, with the biased variance
//   x (..., W), gain (G, E) -> y (..., W)
//
// Head g, h, is the columns [first + g E, first + (g + 1) E) of a row, and has row g of the gains.
// All other columns are copied.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct HeadNormAttrs {
  uint32_t first = 0;  // first column that is normalized
  enum class Kind : uint8_t { kRms, kCentered } kind = Kind::kRms;
  float epsilon = 1e-6f;  // added to the mean square or the variance
};

// The output's description (..., W), or why the inputs do not fit: x (..., W), gain (G, E).
Result<TensorDesc> check_head_norm(const TensorDesc& x, const TensorDesc& gain,
                                   const HeadNormAttrs& attrs);

// Adds the node to the graph, x (..., W), gain (G, E), and returns y (..., W).
Result<TensorId> add_head_norm(Graph& graph, TensorId x, TensorId gain, const HeadNormAttrs& attrs);

Status lower_head_norm(LowerContext& context, const Node& node);

}  // namespace vkformer
