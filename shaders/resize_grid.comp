#version 450
#extension GL_GOOGLE_include_directive : require
// computes: bilinear interpolation of a grid of tokens at another size, channel by channel
// shapes:   X (B, H * W, C) -> Y (B, OH * OW, C)
// mapping:  one workgroup a token of Y; an invocation takes every kLocalSize-th channel
// bounds:   every size may be anything; tokens beyond the last are skipped
// requires: nothing (baseline)
// variants: resize_grid_row__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "resize_grid.h"
#include "rows.glsl"

layout(push_constant) uniform Params { ResizeGridParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

// The source of a place along one side: the row or column before it, and what part of the one after
// it is taken.
void find_source(uint at, uint size, uint factor, uint divisor, int shift, out uint first,
                 out float part) {
  const uint parts = uint(max(int(at * factor) + shift, 0));
  first = min(parts / divisor, size - 1u);
  part = float(parts - first * divisor) / float(divisor);
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  uint top, left;
  float down, across;
  find_source(row / p.out_width % p.out_height, p.height, p.factor_y, p.divisor_y, p.shift_y, top,
              down);
  find_source(row % p.out_width, p.width, p.factor_x, p.divisor_x, p.shift_x, left, across);
  const uint base = row / p.out_width / p.out_height * p.height;
  const uint bottom = min(top + 1u, p.height - 1u);
  const uint right = min(left + 1u, p.width - 1u);
  const uint upper = (base + top) * p.width;
  const uint lower = (base + bottom) * p.width;
  for (uint c = gl_LocalInvocationID.x; c < p.channels; c += kLocalSize) {
    const float above =
        mix(x[(upper + left) * p.channels + c], x[(upper + right) * p.channels + c], across);
    const float below =
        mix(x[(lower + left) * p.channels + c], x[(lower + right) * p.channels + c], across);
    y[row * p.channels + c] = mix(above, below, down);
  }
}
