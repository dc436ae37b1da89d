#version 450
#extension GL_GOOGLE_include_directive : require
// computes: im2col: a row of Y is what the kernel covers at one position, zeros outside the
//           picture; with VKF_SLOPED, what is below 0 times a slope
// shapes:   X (B, C, H, W) or (B, H, W, C) by strides -> Y (B, OH * OW, C * kh * kw)
// mapping:  one workgroup a position; an invocation takes every kLocalSize-th column (c, ky, kx)
// bounds:   every size may be anything; positions beyond the last are skipped
// requires: nothing (baseline)
// variants: unfold_row__f32_none_f32
//           unfold_sloped__f32_none_f32 DEFINES VKF_SLOPED=1
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "conv.h"
#include "rows.glsl"

layout(push_constant) uniform Params { UnfoldParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint out_x = row % p.picture.out_width;
  const uint line = row / p.picture.out_width;
  const uint out_y = line % p.picture.out_height;
  const uint base = p.picture.offset + line / p.picture.out_height * p.picture.batch_stride;
  // Left of and above the picture these wrap to huge numbers, so one comparison finds all outside.
  const uint top = out_y * p.picture.stride_height - p.picture.pad_top;
  const uint left = out_x * p.picture.stride_width - p.picture.pad_left;

  // The column's digits (c, ky, kx) are divided out once and then counted on, digit by digit.
  uint column = gl_LocalInvocationID.x;
  uint kx = column % p.picture.kernel_width;
  const uint rest = column / p.picture.kernel_width;
  uint ky = rest % p.picture.kernel_height;
  uint c = rest / p.picture.kernel_height;
  for (; column < p.columns; column += kLocalSize) {
    const uint at_y = top + ky;
    const uint at_x = left + kx * p.dilation;
    float value = 0.0;
    if (at_y < p.picture.height && at_x < p.picture.width) {
      value = x[base + at_y * p.picture.row_stride + at_x * p.picture.col_stride +
                c * p.picture.channel_stride];
    }
#if VKF_SLOPED
    if (value < 0.0) value *= p.slope;
#endif
    y[row * p.columns + column] = value;
    kx += p.step_x;
    ky += p.step_y;
    c += p.step_channel;
    if (kx >= p.picture.kernel_width) {
      kx -= p.picture.kernel_width;
      ++ky;
    }
    if (ky >= p.picture.kernel_height) {
      ky -= p.picture.kernel_height;
      ++c;
    }
  }
}
