#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the K largest elements, best first, equal ones by ascending index; a NaN is the largest
// shapes:   X (R, V) -> Y (R, K, 2): the value's bits, its index
// mapping:  one workgroup a row, K passes over it, each finding the best after the one before
// bounds:   V may be anything from K on; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;

#include "row_best.glsl"
#include "rows.glsl"
#include "rowwise.h"

layout(push_constant) uniform Params { RowParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  uvec2 previous = uvec2(0u);
  for (uint k = 0u; k < p.best; ++k) {
    uvec2 best = no_best();
    for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
      const uvec2 candidate = uvec2(order_key(x[row * p.width + i]), i);
      if (k > 0u && !is_better(previous, candidate)) continue;
      if (is_better(candidate, best)) best = candidate;
    }
    best = workgroup_best(best);
    if (gl_LocalInvocationID.x == 0u) {
      const uint slot = (row * p.best + k) * 2u;
      y[slot] = floatBitsToUint(x[row * p.width + best.y]);
      y[slot + 1u] = best.y;
    }
    previous = best;
  }
}
