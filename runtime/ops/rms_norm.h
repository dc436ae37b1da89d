// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * gain, over the last axis (Zhang and Sennrich,
// 2019).
//
//   x (..., D), gain (D) -> y (..., D); gain may be followed by a bias, which is not read (2, D)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct RmsNormAttrs {
  float epsilon = 1e-6f;  // added to the mean square
};

// The output's description, or why the inputs do not fit: x (..., D), gain (D) or (2, D).
Result<TensorDesc> check_rms_norm(const TensorDesc& x, const TensorDesc& gain, RmsNormAttrs attrs);

// Adds y = rms_norm(x, gain) to the graph and returns y (..., D).
Result<TensorId> add_rms_norm(Graph& graph, TensorId x, TensorId gain, RmsNormAttrs attrs);

Status lower_rms_norm(LowerContext& context, const Node& node);

}  // namespace vkformer
