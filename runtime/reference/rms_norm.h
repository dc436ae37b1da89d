// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * gain over the last axis (Zhang, Sennrich 2019).
// x (..., D), gain (D) -> y (..., D).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct RmsNormOptions {
  double epsilon = 1e-6;        // added to the mean square, inside the root
  const Array* gain = nullptr;  // (D); absent: ones
};

// x (..., D) -> (..., D).
Result<Array> rms_norm(const Array& x, const RmsNormOptions& options = {});

}  // namespace vkformer::reference
