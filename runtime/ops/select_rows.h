// select_rows: of every batch item the K rows whose largest element is the largest, best first, and
// of equal ones the first. A NaN counts as larger than any number, as in top_k. How detectors
// choose the queries of a decoder (Zhu et al., 2021).
//
//   x (B, S, C) -> y (B, K), U32: rows of x (B * S, C), as gather_rows takes them
#pragma once

#include "ops/op.h"

namespace vkformer {

struct SelectRowsAttrs {
  uint32_t k = 1;  // rows, 1 ... S
};

// The output's description, or why the input does not fit: x (B, S, C).
Result<TensorDesc> check_select_rows(const TensorDesc& x, SelectRowsAttrs attrs);

// Adds the node to the graph and returns y (B, K), U32.
Result<TensorId> add_select_rows(Graph& graph, TensorId x, SelectRowsAttrs attrs);

Status lower_select_rows(LowerContext& context, const Node& node);

}  // namespace vkformer
