// A linear layer to which adapters of requests add, each by the scale that a row's sequence has. It
// is y = act(alpha (x W + (scale * (x A)) B) + bias) + residual. The A of all adapters are side by
// side and their B below each other (weights/request_adapters.h).
#pragma once

#include "model/model_builder.h"
#include "ops/head_linear.h"

namespace vkformer {

// x (..., K) -> y (..., N), of a gated layer (..., N / 2).
Result<TensorId> add_adapted_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                                    const LinearAdapters& adapters, const LinearAttrs& attrs);

// The same with a matrix for each head: x (slots, any) -> y (slots, H N). Heads share one of the
// two matrices that an adapter adds.
Result<TensorId> add_adapted_heads(Graph& graph, TensorId x, const ExpertWeight& weight,
                                   const LinearAdapters& adapters, const HeadLinearAttrs& attrs);

// A packed matrix as those of its heads, of N columns each.
ExpertWeight weight_by_head(LinearWeight all, uint32_t n);

}  // namespace vkformer
