// select_rows: the rows whose largest element is the largest. x (B, S, C) -> (B, K). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// Rows of (B * S, C), best first, of equal ones the first; a NaN is larger than any number.
Result<Array> select_rows(const Array& x, int64_t k);

}  // namespace vkformer::reference
