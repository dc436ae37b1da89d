// argmax: the index of the largest element of the last axis; the first one on ties. A NaN counts as
// larger than any number (told by its bits), so a row with one yields the index of its first NaN.
//
//   x (..., V) -> y (...), U32
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ArgmaxAttrs {};

// The output's description, or why the input does not fit: x (..., V), V above 0.
Result<TensorDesc> check_argmax(const TensorDesc& x);

// Adds y = argmax(x) to the graph and returns y (...), U32.
Result<TensorId> add_argmax(Graph& graph, TensorId x);

Status lower_argmax(LowerContext& context, const Node& node);

}  // namespace vkformer
