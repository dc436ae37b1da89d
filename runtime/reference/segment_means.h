// segment_means: the mean of every segment of S / M neighboring tokens (Xiong et al. 2021).
// x (B, H, S, E) -> y (B, H, M, E).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (B, H, S, E), M a divisor of S -> (B, H, M, E).
Result<Array> segment_means(const Array& x, int64_t segments);

}  // namespace vkformer::reference
