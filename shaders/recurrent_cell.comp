#version 450
#extension GL_GOOGLE_include_directive : require
// computes: one step of a GRU or LSTM cell, element by element, from what its gates get of input
//           and state
// shapes:   X (R, G Hd) by offset and stride, S (R, G Hd), Carry (R, Hd), in place -> H (R, Hd); G
//           is 3 or 4
// mapping:  one workgroup a run of kChunk units of a row; runs on z, rows on x and y
// bounds:   Hd may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: recurrent_cell_run__f32_none_f32
#include "recurrent.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RECURRENT_CELL_CONSTANTS)

#include "recurrent_gates.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { RecurrentCellParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer S { float s[]; };
layout(binding = 2) buffer Carry { float carry[]; };
layout(binding = 3) writeonly buffer H { float h[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint from = p.offset + row * p.stride;
  const uint state = row * p.width * (3u + kLstm);
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  for (uint u = first + gl_LocalInvocationID.x; u < last; u += kLocalSize) {
    vec4 a = vec4(x[from + u], x[from + p.width + u], x[from + 2u * p.width + u], 0.0);
    vec4 b = vec4(s[state + u], s[state + p.width + u], s[state + 2u * p.width + u], 0.0);
    if (kLstm != 0u) {
      a.w = x[from + 3u * p.width + u];
      b.w = s[state + 3u * p.width + u];
    }
    const uint at = row * p.width + u;
    const vec2 next = cell_update(a, b, carry[at]);
    carry[at] = next.y;
    h[at] = next.x;
  }
}
