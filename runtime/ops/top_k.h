// top_k: the K largest elements of the last axis, best first, equal ones by ascending index. A NaN
// counts as larger than any number, as in argmax.
//
//   x (..., V) -> y (..., K, 2), U32: the value's f32 bits, its index
#pragma once

#include "ops/op.h"

namespace vkformer {

// The largest K; the kernel reads a row K times.
inline constexpr uint32_t kMaxTopK = 64;

struct TopKAttrs {
  uint32_t k = 1;  // elements, 1 ... min(V, kMaxTopK)
};

// The output's description, or why the input does not fit: x (..., V).
Result<TensorDesc> check_top_k(const TensorDesc& x, TopKAttrs attrs);

// Adds y = top_k(x) to the graph and returns y (..., K, 2), U32.
Result<TensorId> add_top_k(Graph& graph, TensorId x, TopKAttrs attrs);

Status lower_top_k(LowerContext& context, const Node& node);

}  // namespace vkformer
