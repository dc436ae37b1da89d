#version 450
#extension GL_GOOGLE_include_directive : require
// computes: a run of columns of every row of y = one of x, or zeros; the rest of y stays as it is
// shapes:   X (R, any) by offset and stride -> Y (R, any) by offset and stride; VKF_STEP: one of
//           both is a cache of states (rows, 2, line)
// mapping:  one workgroup a run of kChunk columns of a row; runs on z, rows (slots) on x and y
// bounds:   widths may be anything; rows beyond the last, and slots beyond the live ones, are
//           skipped
// requires: nothing (baseline); X may be unused (kFrom = 0)
// variants: move_columns_run__f32_none_f32
//           move_columns_step__f32_none_f32 DEFINES VKF_STEP=1
#include "recurrent.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MOVE_COLUMNS_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { MoveColumnsParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
#ifdef VKF_STEP
#include "decode_state.h"
layout(binding = 1) readonly buffer Ancestry { uint ancestry[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(binding = 3) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#include "parent_row.glsl"
#else
layout(binding = 1) writeonly buffer Y { float y[]; };
#endif

void main() {
  const uint slot = row_group_index();
  uint x_row = slot;
  uint y_row = slot;
#ifdef VKF_STEP
  if (slot >= state.live_slots) return;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  const uint position = state.position - VKF_SLOT_START(entry);
  if (kFrom == 2u) x_row = parent_line(row, position, p.lines, p.beams);
  if (kFrom == 1u) y_row = own_line(row, position);
#else
  if (slot >= p.rows) return;
#endif
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  const uint from = p.x_offset + x_row * p.x_stride;
  const uint to = p.y_offset + y_row * p.y_stride;
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    float value = 0.0;
    if (kFrom != 0u) value = x[from + i];
    y[to + i] = value;
  }
}
