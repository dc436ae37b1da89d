// top_k: the k largest elements of the last axis, best first; equal values by ascending index. A
// NaN counts as larger than any number, as in argmax. x (..., V) -> values (..., K), indices (...,
// K), K the number asked for. Needs: Array.
#pragma once

#include <span>

#include "reference/array.h"

namespace vkformer::reference {

struct TopK {
  Array values;   // (..., K)
  Array indices;  // (..., K)
};

// x (..., V). An error unless 1 <= k <= V.
Result<TopK> top_k(const Array& x, int64_t k);

// The indices of the k best of one row, fewer if the row is shorter. row (V).
std::vector<int64_t> top_k_row(std::span<const double> row, int64_t k);

}  // namespace vkformer::reference
