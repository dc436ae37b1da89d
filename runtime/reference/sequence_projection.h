// sequence_projection: y = P (m x) along the sequence, for every head (Linformer: Wang et al.
// 2020). The first S columns of P are used; a masked key is not read. Needs: array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (B, H, S, E), matrix (P, N) or (H, P, N), mask (B, S) or null -> (B, H, P, E).
Result<Array> sequence_projection(const Array& x, const Array& matrix, const Array* mask);

}  // namespace vkformer::reference
