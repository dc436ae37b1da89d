// conv: a direct convolution in groups, for what unfold and a linear layer do not fit: depthwise
// (groups = C) above all. Cross-correlation, without dilation.
//
//   x (B, C, H, W) or (B, H, W, C), table (out, C/groups * kh * kw + 1)
//       -> y (B, out, OH, OW) or (B, OH, OW, out)
//   y[b, o, oy, ox] = bias[o] + sum over c, ky, kx of weight[o, c, ky, kx] *
//       x[b, o / (out/groups) * (C/groups) + c, oy * stride_height + ky - pad_top,
//         ox * stride_width + kx - pad_left]                               0 outside the picture
//
// A row of the table is a row of the weight (out, C/groups, kh, kw), then its bias.
// weights/fold_batch_norm.h makes it and folds a batch norm into it. Pixels outside are omitted or
// multiplied as zeros; the difference shows only where a weight is infinite or NaN.
#pragma once

#include "ops/activation.h"
#include "ops/conv_window.h"

namespace vkformer {

struct ConvAttrs {
  ConvSource source = {.order = ChannelOrder::kLast};
  ConvWindow window = {};
  uint32_t groups = 1;
  ChannelOrder out_order = ChannelOrder::kLast;
  // Tokens before each image in x (B, T, C), class tokens. They are copied to y, which then needs
  // out = C and the same order of axes.
  uint32_t leading_tokens = 0;
};

// What a conv node carries: fusion (ops/fusion.h) puts an activation into it.
struct ConvNodeAttrs {
  ConvAttrs conv;
  ActivationKind activation = ActivationKind::kNone;
};

// The output's description, with as many dimensions as x, or why the inputs do not fit. The inputs
// are x (B, C, H, W), (B, H, W, C), (B, C, T) or (B, T, C), as attrs.source says. The table is
// (out, C/groups * kh * kw + 1).
Result<TensorDesc> check_conv(const TensorDesc& x, const TensorDesc& table, const ConvAttrs& attrs);

// Adds y = conv(x, table) to the graph and returns y: (B, out, OH, OW), (B, OH, OW, out), or either
// with T = OH * OW.
Result<TensorId> add_conv(Graph& graph, TensorId x, TensorId table, const ConvAttrs& attrs);

Status lower_conv(LowerContext& context, const Node& node);

}  // namespace vkformer
