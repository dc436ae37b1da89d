// inverse_spline: the inverse of a monotonic piecewise rational quadratic function (Durkan et al.,
// 2019, "Neural spline flows"), as ops/inverse_spline.h describes it. Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (...), params (..., 3 bins - 1) -> (...).
Result<Array> inverse_spline(const Array& x, const Array& params, int64_t bins, double bound);

}  // namespace vkformer::reference
