// unfold (im2col): `y[b, oy OW + ox, (c kh + ky) kw + kx] = x[b, c, oy sh + ky - top, ox sw + kx -
// left]`, 0 outside the image (Chellapilla, Puri and Simard, 2006). x (B, C, H, W) -> y (B, OH *
// OW, C * kh * kw). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct WindowOptions {
  int64_t kernel_height = 1;  // pixels
  int64_t kernel_width = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t out_height = 0;  // positions; 0: as many as fit with the padding on both sides
  int64_t out_width = 0;
  int64_t dilation = 1;      // pixels along the width between two columns of the kernel
  int64_t first_column = 0;  // positions along the width before the first one
  double slope = 1.0;        // multiplies what is below 0
};

// The positions along an axis of `size` pixels. Precondition: stride > 0.
int64_t window_positions(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t given);

// x (B, C, H, W) -> (B, OH * OW, C * kh * kw).
Result<Array> unfold(const Array& x, const WindowOptions& options);

// x (B, C, H, W) -> (B, H, W, C).
Array channels_last(const Array& x);

}  // namespace vkformer::reference
