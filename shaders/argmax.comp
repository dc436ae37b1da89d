#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the index of the largest element; the first on ties; of the first NaN if there is one
// shapes:   X (R, V) -> Y (R) indices
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   V may be anything above 0; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: argmax_row__f32_none_u32
//           argmax_row__f32_none_u32_subgroup FEATURES subgroup
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "row_best.glsl"
#include "rows.glsl"
#include "rowwise.h"

layout(push_constant) uniform Params { RowParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  uvec2 best = no_best();
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const uvec2 candidate = uvec2(order_key(x[row * p.width + i]), i);
    if (is_better(candidate, best)) best = candidate;
  }
  best = workgroup_best(best);
  if (gl_LocalInvocationID.x == 0u) y[row] = best.y;
}
