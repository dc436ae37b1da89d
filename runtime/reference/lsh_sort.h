// lsh_sort: positions by bucket, stably, round by round. buckets (B, H, R, S) -> order (B, H, R,
// S). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// buckets (B, H, R, S) -> (B, H, R, S).
Result<Array> lsh_sort(const Array& buckets);

}  // namespace vkformer::reference
