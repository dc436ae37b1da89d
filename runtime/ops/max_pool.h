// max_pool: the largest value of each channel inside a window over a picture.
//
//   x (B, C, H, W) or (B, H, W, C) -> y (B, OH * OW, C)
//   y[b, oy * OW + ox, c] = max over ky, kx inside the picture of
//       x[b, c, oy * stride_height + ky - pad_top, ox * stride_width + kx - pad_left]
//
// NaN wins. Pixels outside the picture are omitted; every window must cover one that is inside.
#pragma once

#include "ops/conv_window.h"

namespace vkformer {

struct MaxPoolAttrs {
  ConvSource source = {};
  ConvWindow window = {};
};

// The output's description, or why the window does not fit x. attrs.source says which x is: (B, C,
// H, W), (B, H, W, C), (B, C, T) or (B, T, C).
Result<TensorDesc> check_max_pool(const TensorDesc& x, const MaxPoolAttrs& attrs);

// Adds y = max_pool(x) to the graph and returns y (B, OH * OW, C).
Result<TensorId> add_max_pool(Graph& graph, TensorId x, const MaxPoolAttrs& attrs);

Status lower_max_pool(LowerContext& context, const Node& node);

}  // namespace vkformer
