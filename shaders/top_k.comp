#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the K largest elements, best first, equal ones by ascending index; a NaN is the largest
// shapes:   X (R, V) -> Y (R, K, 2): the value's bits, its index
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element and keeps its best
// bounds:   V may be anything from K on; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: top_k_row__f32_none_f32
//           top_k_row__f32_none_f32_subgroup FEATURES subgroup
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "row_best.glsl"
#include "rows.glsl"
#include "rowwise.h"

layout(push_constant) uniform Params { RowParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

uint row_base;
uvec2 candidate_at(uint i) { return uvec2(order_key(x[row_base + i]), i); }
#include "row_kept.glsl"

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  row_base = row * p.width;
  keep_best(false, no_best(), p.width);
  for (uint k = 0u; k < p.best; ++k) {
    const uvec2 best = next_best(p.width);
    if (gl_LocalInvocationID.x == 0u) {
      const uint slot = (row * p.best + k) * 2u;
      y[slot] = floatBitsToUint(x[row_base + best.y]);
      y[slot + 1u] = best.y;
    }
  }
}
