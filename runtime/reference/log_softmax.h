// log_softmax: y = x - max x - ln(sum exp(x - max x)) over the last axis; natural logarithm.
// A row of only -inf stays -inf; a NaN makes its whole row NaN. x (..., V) -> y (..., V).
// Needs: Array.
#pragma once

#include <span>

#include "reference/array.h"

namespace vkformer::reference {

// x (..., V) -> (..., V).
Result<Array> log_softmax(const Array& x);

// One row in place. row (V).
void log_softmax_row(std::span<double> row);

}  // namespace vkformer::reference
