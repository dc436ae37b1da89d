// head_norm: y = h / sqrt(mean(h^2) + epsilon) * gain, or (h - mean h) / sqrt(variance h + epsilon)
// * gain, over each head h of a row. Other columns are copied (Henry et al., 2020). x (..., W),
// gain (G, E) -> y (..., W).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct HeadNormOptions {
  double epsilon = 1e-6;  // added to the mean square or the variance, inside the root
  int64_t first = 0;      // column that the first head begins with
  bool centered = false;  // the head's mean is subtracted first
};

// x (..., W), gain (G, E) with first + G E <= W -> (..., W).
Result<Array> head_norm(const Array& x, const Array& gain, const HeadNormOptions& options = {});

}  // namespace vkformer::reference
