// head_linear: y_h = x_h W_h, a product for every head. Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (R, any), of which head h has the K columns from first + h * stride on, w (H, K, N)
// -> (R, H N). An error if shapes do not fit.
Result<Array> head_linear(const Array& x, const Array& w, int64_t first, int64_t stride);

}  // namespace vkformer::reference
