// unfold (im2col): every position of a window over an image as one row. A packed linear layer after
// it is then a dense convolution (Chellapilla, Puri and Simard, 2006).
//
//   x (B, C, H, W) or (B, H, W, C) -> y (B, OH * OW, C * kh * kw)
//   y[b, oy * OW + ox, (c * kh + ky) * kw + kx] =
//       x[b, c, oy * stride_height + ky - pad_top, ox * stride_width + kx - pad_left], 0 outside
//
// With a dilation d the kernel's columns are d pixels apart: kx d in the place of kx. These are
// dilated convolutions (van den Oord et al., 2016, WaveNet). With a slope a, x below 0 counts as a
// x (leaky ReLU: Maas et al., 2013), for convolutions that follow an activation.
//
// The columns are in the order of a convolution's weight (out, C, kh, kw). So that weight is the
// linear layer's weight (out, C * kh * kw) as it is.
#pragma once

#include "ops/conv_window.h"

namespace vkformer {

struct UnfoldAttrs {
  ConvSource source = {};
  ConvWindow window = {};
  uint32_t dilation = 1;      // pixels along the width from a column of the kernel to the next
  uint32_t first_column = 0;  // positions along the width that come before the first row of y
  float slope = 1.0f;         // multiplies what is below 0
};

// The output's description, or why the window does not fit x. attrs.source says which x is: (B, C,
// H, W), (B, H, W, C), (B, C, T) or (B, T, C).
Result<TensorDesc> check_unfold(const TensorDesc& x, const UnfoldAttrs& attrs);

// Adds y = unfold(x) to the graph and returns y (B, OH * OW, C * kh * kw).
Result<TensorId> add_unfold(Graph& graph, TensorId x, const UnfoldAttrs& attrs);

Status lower_unfold(LowerContext& context, const Node& node);

}  // namespace vkformer
