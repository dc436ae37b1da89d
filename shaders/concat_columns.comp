#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y's row = a's row, then b's row
// shapes:   A (R, Da), B (R, Db) -> Y (R, Da + Db)
// mapping:  one workgroup a run of kChunk elements of an output row; runs on z, rows on x and y
// bounds:   Da and Db may be anything, also 0; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: concat_columns_run__f32_none_f32
#include "row_moves.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RUN_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { ConcatColumnsParams p; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint width = p.a_width + p.b_width;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    float value;
    if (i < p.a_width) {
      value = a[row * p.a_width + i];
    } else {
      value = b[row * p.b_width + i - p.a_width];
    }
    y[row * width + i] = value;
  }
}
