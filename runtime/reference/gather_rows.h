// gather_rows: y[n] = x[indices[n]], zeros where there is no such row, plus addend[n % P].
// x (..., D), indices (...), addend (P, D) -> y (indices' shape, D).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (..., D), indices (...), addend (P, D) or null -> (indices' shape, D).
Result<Array> gather_rows(const Array& x, const Array& indices, const Array* addend = nullptr);

}  // namespace vkformer::reference
