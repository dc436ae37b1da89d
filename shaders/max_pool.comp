#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the largest value of each channel that a window covers; pixels outside are omitted
// shapes:   X (B, C, H, W) or (B, H, W, C) by strides -> Y (B, OH * OW, C)
// mapping:  one workgroup a position; an invocation takes every kLocalSize-th channel
// bounds:   every size may be anything; positions beyond the last are skipped
// requires: nothing (baseline)
// variants: max_pool_row__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "conv.h"
#include "float_bits.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { PoolParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

// NaN beats every number.
float larger(float best, float value) {
  if (is_nan(best)) return best;
  return is_nan(value) || value > best ? value : best;
}

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
  for (uint c = gl_LocalInvocationID.x; c < p.channels; c += kLocalSize) {
    float best = negative_infinity();
    for (uint ky = 0u; ky < p.picture.kernel_height; ++ky) {
      const uint at_y = top + ky;
      if (at_y >= p.picture.height) continue;
      for (uint kx = 0u; kx < p.picture.kernel_width; ++kx) {
        const uint at_x = left + kx;
        if (at_x >= p.picture.width) continue;
        best = larger(best, x[base + at_y * p.picture.row_stride + at_x * p.picture.col_stride +
                              c * p.picture.channel_stride]);
      }
    }
    y[row * p.channels + c] = best;
  }
}
