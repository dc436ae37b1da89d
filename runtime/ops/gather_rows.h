// gather_rows: y[n] = x[indices[n]] + addend[n % P].
//
//   x (..., D), indices (N) or any shape, addend (P, D) -> y (N, D) or (indices' shape, D)
//
// x's leading dimensions are folded into R rows. An index without a row (R or above) gives zeros,
// to which the addend is added as well. Index lists are made on the host: windows and their
// reverse, cyclic shifts, patch merging, class tokens and row selection are all this operator.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct GatherRowsAttrs {};

struct GatherRowsInputs {
  TensorId x = kNoTensor;        // (..., D), F32
  TensorId indices = kNoTensor;  // (N) or any shape, U32
  TensorId addend = kNoTensor;   // (P, D), F32, or absent
};

// The output's description, or why the inputs do not fit: x (..., D), indices (N) or any shape.
Result<TensorDesc> check_gather_rows(const TensorDesc& x, const TensorDesc& indices);
// Does the addend fit? addend (P, D), x (..., D).
Status check_gather_rows_addend(const TensorDesc& addend, const TensorDesc& x);

// Adds the node to the graph and returns y (N, D), or (indices' shape, D).
Result<TensorId> add_gather_rows(Graph& graph, const GatherRowsInputs& inputs);

Status lower_gather_rows(LowerContext& context, const Node& node);

}  // namespace vkformer
