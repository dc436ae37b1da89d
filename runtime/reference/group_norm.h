// group_norm: y = (x - mean) / sqrt(variance + epsilon) * gain + bias. Mean and biased variance are
// over the channels of a group and all tokens (Wu and He, 2018). x (B, C, T), gain (C), bias (C) ->
// y (B, C, T). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct GroupNormOptions {
  int64_t groups = 1;
  double epsilon = 1e-5;  // added to the variance
};

// x (B, C, T), gain (C), bias (C) -> (B, C, T).
Result<Array> group_norm(const Array& x, const Array& gain, const Array& bias,
                         const GroupNormOptions& options);

}  // namespace vkformer::reference
