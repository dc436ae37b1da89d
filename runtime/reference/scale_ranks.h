// scale_ranks: y[r, j] = scales[sequence[r], ranks[j]] x[r, j], 0 where that scale is 0.
// x (R, J), scales (sequences, A), ranks (J), sequences (R) -> y (R, J).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// An error if the shapes differ, or a sequence or rank is none.
Result<Array> scale_ranks(const Array& x, const Array& scales, const Array& ranks,
                          const std::vector<int64_t>& sequences);

}  // namespace vkformer::reference
