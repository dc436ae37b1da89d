// conv: cross-correlation in groups, zeros outside the image, without dilation. y[b, o, oy, ox] =
// bias[o] + sum over c, ky, kx of `weight[o, c, ky, kx] * x[b, o / (out/groups) * (C/groups) + c,
// oy sh + ky - top, ox sw + kx - left]`. x (B, C, H, W), weight (out, C/groups, kh, kw), bias (out)
// -> y (B, out, OH, OW). Needs: Array, WindowOptions.
#pragma once

#include "reference/unfold.h"

namespace vkformer::reference {

struct ConvOptions {
  WindowOptions window = {};    // the kernel's size is taken from the weight
  int64_t groups = 1;           // of channels
  const Array* bias = nullptr;  // (out); absent: 0
};

// x (B, C, H, W), weight (out, C/groups, kh, kw) -> (B, out, OH, OW).
Result<Array> conv(const Array& x, const Array& weight, const ConvOptions& options = {});

}  // namespace vkformer::reference
