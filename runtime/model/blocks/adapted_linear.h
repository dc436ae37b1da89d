// A linear layer to which adapters of requests add, each by the scale that a row's sequence has. It
// is y = act(alpha (x W + (scale * (x A)) B) + bias) + residual. The A of all adapters are side by
// side and their B below each other (weights/request_adapters.h).
#pragma once

#include "model/model_builder.h"

namespace vkformer {

// x (..., K) -> y (..., N), of a gated layer (..., N / 2).
Result<TensorId> add_adapted_linear(Graph& graph, TensorId x, const LinearWeight& weight,
                                    const LinearAdapters& adapters, const LinearAttrs& attrs);

}  // namespace vkformer
