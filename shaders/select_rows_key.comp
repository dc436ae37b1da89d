#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the largest element of each row, as a key that orders floats as unsigned integers; a
//           NaN is the largest
// shapes:   X (B, S, C) -> Keys (B, S)
// mapping:  one invocation a row; workgroups of kLocalSize rows fold over x and y
// bounds:   every size may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: select_rows_key__f32_none_u32
#include "select_rows.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "order_key.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { SelectRowsParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Keys { uint keys[]; };

void main() {
  const uint row = row_group_index() * kLocalSize + gl_LocalInvocationID.x;
  if (row >= p.items * p.rows) return;
  uint key = 0u;
  for (uint i = 0u; i < p.width; ++i) key = max(key, order_key(x[row * p.width + i]));
  keys[row] = key;
}
