// inverse_spline: the inverse of a monotonic piecewise rational quadratic function, element by
// element, each with its own bins (Durkan et al., 2019, "Neural spline flows").
//
//   x (...), params (..., 3 K - 1) -> y (...)
//
// A row of params is K logits of widths, K logits of heights, K - 1 raw derivatives at the inner
// knots. Widths are 2b (m + (1 - K m) softmax) with m = 1e-3 and b the bound, heights likewise, and
// derivatives m + softplus, 1 at both ends. Outside of [-b, b] y = x.
#pragma once

#include "ops/op.h"

namespace vkformer {

// K at most: what an invocation walks over.
inline constexpr uint32_t kMostSplineBins = 256;

struct InverseSplineAttrs {
  uint32_t bins = 10;  // K, 1 to kMostSplineBins
  float bound = 5.0f;  // b, above 0
};

// The output's description, or why the inputs do not fit: x (...), params (..., 3 K - 1).
Result<TensorDesc> check_inverse_spline(const TensorDesc& x, const TensorDesc& params,
                                        InverseSplineAttrs attrs);

// Adds y = inverse_spline(x, params) to the graph, x (...), params (..., 3 K - 1), and returns
// y (...).
Result<TensorId> add_inverse_spline(Graph& graph, TensorId x, TensorId params,
                                    InverseSplineAttrs attrs);

Status lower_inverse_spline(LowerContext& context, const Node& node);

}  // namespace vkformer
