// layer_norm: y = (x - mean) / sqrt(variance + epsilon) * gain + bias over the last axis, with the
// biased variance (Ba, Kiros, Hinton 2016). With a residual, the fused form y = layer_norm(x + r).
// x (..., D), gain (D), bias (D), residual (..., D) -> y (..., D).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct LayerNormOptions {
  double epsilon = 1e-5;            // added to the variance, inside the root
  const Array* gain = nullptr;      // (D); absent: ones
  const Array* bias = nullptr;      // (D); absent: zeros
  const Array* residual = nullptr;  // (..., D), the shape of x; absent: zeros
};

// x (..., D) -> (..., D).
Result<Array> layer_norm(const Array& x, const LayerNormOptions& options = {});

}  // namespace vkformer::reference
