// deformable_attention: queries read bilinear samples around their boxes.
// value (B, S, H * E), samples (B, Q, 3 * H * L * P), boxes (B, Q, 4) -> (B, Q, H * E).
// Needs: Array.
#pragma once

#include <utility>

#include "reference/array.h"

namespace vkformer::reference {

struct DeformableOptions {
  int64_t heads = 1;
  int64_t points = 1;
  std::vector<std::pair<int64_t, int64_t>> levels;  // height and width of each grid
};

// A row of samples is [offsets (H, L, P, 2) | scores (H, L, P)]. A place that is NaN gives NaN.
Result<Array> deformable_attention(const Array& value, const Array& samples, const Array& boxes,
                                   const DeformableOptions& options);

}  // namespace vkformer::reference
