// combine: y = alpha a + beta b. a (...), b (...) -> y (...).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// a (...), b (...) -> (...). An error if the shapes differ.
Result<Array> combine(const Array& a, double alpha, const Array& b, double beta);

}  // namespace vkformer::reference
