// concat_columns: every row of a followed by the same row of b.
// a (..., Da), b (..., Db) -> y (..., Da + Db).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// a (..., Da), b (..., Db) -> (..., Da + Db). An error if the other axes differ.
Result<Array> concat_columns(const Array& a, const Array& b);

}  // namespace vkformer::reference
