// combine: y = alpha a + beta b, b limited to [-most, most]. a (...), b (...) -> y (...).
// Needs: Array.
#pragma once

#include <limits>

#include "reference/array.h"

namespace vkformer::reference {

// a (...), b (...) -> (...). An error if the shapes differ.
Result<Array> combine(const Array& a, double alpha, const Array& b, double beta,
                      double most = std::numeric_limits<double>::infinity());

}  // namespace vkformer::reference
