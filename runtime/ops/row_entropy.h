// row_entropy: y = -sum x ln x over the last axis, in nats, with 0 ln 0 = 0. A NaN or a negative
// element makes its row's entropy NaN.
//
//   x (..., S) -> y (...)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct RowEntropyAttrs {};

// The output's description, or why the input does not fit: x (..., S).
Result<TensorDesc> check_row_entropy(const TensorDesc& x);

// Adds y = row_entropy(x) to the graph and returns y (...).
Result<TensorId> add_row_entropy(Graph& graph, TensorId x);

Status lower_row_entropy(LowerContext& context, const Node& node);

}  // namespace vkformer
