// layer_norm: y = (h - mean h) / sqrt(variance h + epsilon) * gain + bias over the last axis, with
// the biased variance (Ba, Kiros and Hinton, 2016). Here h = x, or x + residual where one is given.
//
//   x (..., D), residual (..., D), gain_bias (2, D) -> y (..., D)
//
// Gain and bias are one tensor, gain first: phones guarantee only four storage bindings.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct LayerNormAttrs {
  float epsilon = 1e-5f;  // added to the variance
};

struct LayerNormInputs {
  TensorId x = kNoTensor;          // (..., D)
  TensorId gain_bias = kNoTensor;  // (2, D): gain, bias
  TensorId residual = kNoTensor;   // (..., D), or absent
};

// The output's description, or why the inputs do not fit: x (..., D), gain_bias (2, D).
Result<TensorDesc> check_layer_norm(const TensorDesc& x, const TensorDesc& gain_bias,
                                    LayerNormAttrs attrs);
// Does the residual fit? x (..., D), residual (..., D).
Status check_layer_norm_residual(const TensorDesc& x, const TensorDesc& residual);

// Adds y = layer_norm(x + residual) to the graph and returns y (..., D).
Result<TensorId> add_layer_norm(Graph& graph, const LayerNormInputs& inputs, LayerNormAttrs attrs);

Status lower_layer_norm(LowerContext& context, const Node& node);

}  // namespace vkformer
