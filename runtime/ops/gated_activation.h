// gated_activation: y = kind(first half of x's last axis) * second half; with silu SwiGLU, with
// gelu GEGLU (Shazeer, 2020, "GLU variants improve Transformer").
//
//   x (..., 2F) -> y (..., F)
#pragma once

#include "ops/activation.h"

namespace vkformer {

struct GatedActivationAttrs {
  ActivationKind kind = ActivationKind::kSilu;
};

// The output's description, or why the input does not fit: x (..., 2F).
Result<TensorDesc> check_gated_activation(const TensorDesc& x, GatedActivationAttrs attrs);

// Adds y = kind(x's first half) * x's second half to the graph and returns y (..., F).
Result<TensorId> add_gated_activation(Graph& graph, TensorId x, GatedActivationAttrs attrs);

Status lower_gated_activation(LowerContext& context, const Node& node);

}  // namespace vkformer
