#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y[n] = x[index n], 0 where there is no such row, plus addend[n % P] where there is one
// shapes:   X (R, D), Indices (N), Addend (P, D) -> Y (N, D)
// mapping:  one workgroup a run of kChunk elements of an output row; runs on z, rows on x and y
// bounds:   D and indices may be anything; rows beyond the last are skipped; Addend may be unused
// requires: nothing (baseline)
// variants: gather_rows_run__f32_none_f32
#include "row_moves.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_GATHER_ROWS_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { GatherRowsParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Indices { uint indices[]; };
layout(binding = 2) readonly buffer Addend { float addend[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint index = indices[row];
  const bool exists = index < p.source_rows;
  const uint from = index * p.width;
  const uint added = kHasAddend != 0u ? row % p.addend_rows * p.width : 0u;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    float value = 0.0;
    if (exists) value = x[from + i];
    if (kHasAddend != 0u) value += addend[added + i];
    y[row * p.width + i] = value;
  }
}
