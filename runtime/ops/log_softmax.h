// log_softmax: y = x - max x - ln(sum exp(x - max x)) over the last axis. A row of only -inf stays
// -inf; a NaN or +inf makes its whole row NaN.
//
//   x (..., V) -> y (..., V)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct LogSoftmaxAttrs {};

// The output's description, or why the input does not fit: x (..., V).
Result<TensorDesc> check_log_softmax(const TensorDesc& x);

// Adds y = log_softmax(x) to the graph and returns y (..., V).
Result<TensorId> add_log_softmax(Graph& graph, TensorId x);

Status lower_log_softmax(LowerContext& context, const Node& node);

}  // namespace vkformer
