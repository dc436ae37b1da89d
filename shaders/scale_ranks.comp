#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y[r, j] = x[r, j] times the scale of adapter ranks[j] in row r's sequence; 0 where that
//           scale is 0, whatever x is
// shapes:   X (R, J), Scales (sequences, A), Ranks (J), State -> Y (R, J)
// mapping:  one workgroup a run of kChunk elements of a row; runs on z, rows on x and y
// bounds:   J may be anything; rows beyond the last are skipped; ranks lie below A
// requires: nothing (baseline); VKF_STEP: rows are slots, whose sequence State says
// variants: scale_ranks_row__f32_none_f32
//           scale_ranks_step__f32_none_f32 DEFINES VKF_STEP=1
#include "row_moves.h"
#include "scale_ranks.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RUN_CONSTANTS)

#include "rows.glsl"
#ifdef VKF_STEP
#include "decode_state.h"
#endif

layout(push_constant) uniform Params { ScaleRanksParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Scales { float scales[]; };
layout(binding = 2) readonly buffer Ranks { float ranks[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
#ifdef VKF_STEP
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#endif

uint sequence_of(uint row) {
#ifdef VKF_STEP
  return VKF_SLOT_ROW(slot_rows[row >> 2u][row & 3u]);
#else
  return row / p.per_item * p.beams;
#endif
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint own = sequence_of(row) * p.adapters;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    const float scale = scales[own + uint(ranks[i])];
    float value = 0.0;
    if (scale != 0.0) value = scale * x[row * p.width + i];
    y[row * p.width + i] = value;
  }
}
