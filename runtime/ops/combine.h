// combine: y = alpha a + beta b, element by element, b limited to [-most, most] where there is
// such.
//
//   a (...), b (...) -> y (...)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct CombineAttrs {
  float alpha = 1.0f;  // multiplies a
  float beta = 1.0f;   // multiplies b
  float most = 0.0f;   // limits b before that; 0: nothing does
};

// The output's description, or why the inputs do not fit: a (...), b of the same shape.
Result<TensorDesc> check_combine(const TensorDesc& a, const TensorDesc& b, CombineAttrs attrs);

// Adds the node to the graph, a (...), b (...), and returns y (...).
Result<TensorId> add_combine(Graph& graph, TensorId a, TensorId b, CombineAttrs attrs);

Status lower_combine(LowerContext& context, const Node& node);

}  // namespace vkformer
