// gated_norm: a gate beside a value, with or without an RMS norm of groups. It is of Mamba-2 (Dao
// and Gu, 2024), gated delta networks (Yang et al., 2024) and gated attention (Qiu et al., 2025).
//
//   gate only:  y = x act(z)
//   gate first: y = h / sqrt(mean(h^2) + epsilon) * gain, h = x act(z)
//   norm first: y = x / sqrt(mean(x^2) + epsilon) * gain * act(z)
//   x (..., G E), z (..., any) as many rows, gain (G, E) -> y (..., G E); means over each group
#pragma once

#include "ops/activation.h"

namespace vkformer {

struct GatedNormAttrs {
  enum class Order : uint8_t { kGateOnly, kGateFirst, kNormFirst } order = Order::kGateOnly;
  ActivationKind activation = ActivationKind::kSilu;  // act
  uint32_t first = 0;                                 // column of z of the first gate
  float epsilon = 1e-6f;                              // added to the mean square
};

// The output's description, or why the inputs do not fit. The inputs are x (..., G E), z (..., at
// least first + G E), and gain (G, E). Where only a gate is asked for, the gain is null.
Result<TensorDesc> check_gated_norm(const TensorDesc& x, const TensorDesc& z,
                                    const TensorDesc* gain, const GatedNormAttrs& attrs);

// Adds the node to the graph, and returns y (..., G E); gain may be kNoTensor for a gate only.
Result<TensorId> add_gated_norm(Graph& graph, TensorId x, TensorId z, TensorId gain,
                                const GatedNormAttrs& attrs);

Status lower_gated_norm(LowerContext& context, const Node& node);

}  // namespace vkformer
