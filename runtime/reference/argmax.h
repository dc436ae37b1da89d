// argmax: the index of the largest element of the last axis; the first one on ties. A NaN counts as
// larger than any number, so a row with one yields the index of its first NaN. x (..., V) -> (...).
// Needs: Array.
#pragma once

#include <span>

#include "reference/array.h"

namespace vkformer::reference {

// x (..., V), V above 0 -> indices (...).
Result<Array> argmax(const Array& x);

// One row. row (V). Precondition: not empty.
int64_t argmax_row(std::span<const double> row);

}  // namespace vkformer::reference
