// gated_activation: y = kind(gate) * up. A row of x is the gate projection, then the up projection,
// or pairs of an element of each. With silu it is SwiGLU, with gelu GEGLU (Shazeer, 2020, "GLU
// variants improve Transformer").
//
// A second kind may apply to what is multiplied: with tanh and sigmoid WaveNet's gated units (van
// den Oord et al., 2016).
//
//   x (..., 2F) -> y (..., F)
#pragma once

#include "ops/activation.h"

namespace vkformer {

// kPairs: column 2i of a row is the gate of column 2i + 1.
enum class GatePairs : uint8_t { kNo, kPairs };

struct GatedActivationAttrs {
  ActivationKind kind = ActivationKind::kSilu;
  GatePairs pairs = GatePairs::kNo;
  ActivationKind up = ActivationKind::kNone;  // of what the gates multiply
};

// The output's description, or why the input does not fit: x (..., 2F).
Result<TensorDesc> check_gated_activation(const TensorDesc& x, GatedActivationAttrs attrs);

// Adds y = kind(x's gates) * the rest of x to the graph and returns y (..., F).
Result<TensorId> add_gated_activation(Graph& graph, TensorId x, GatedActivationAttrs attrs);

Status lower_gated_activation(LowerContext& context, const Node& node);

}  // namespace vkformer
