#version 450
#extension GL_GOOGLE_include_directive : require
// computes: cache[row of slot, own position] = the key and value columns of x[slot]; a prompt's: of x[item, token]
// shapes:   X (slots, row_stride) or (B, P, row_stride), State -> Cache (R, lines, Hkv * (E + Ev))
// mapping:  a workgroup owns one slot or token (x, y); an invocation takes every kLocalSize-th element of its line
// bounds:   slots beyond the live ones and positions beyond C are skipped, of a prompt those that are padding or roll out
// requires: nothing (baseline); VKF_PROMPT: token t of item b goes to position t of the item's first row
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;

#include "attention.h"
#include "cache_line.glsl"
#include "decode_state.h"

layout(push_constant) uniform Params { KvAppendParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Cache { float cache[]; };
layout(binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#ifdef VKF_PROMPT
#include "rows.glsl"
#endif

void main() {
#ifdef VKF_PROMPT
  const uint slot = row_group_index();
  if (slot >= p.rows) return;
  const uint row = slot / p.tokens * p.beams;
  const uint position = slot % p.tokens;
  // Slots are rows before the first step, whose position the item's last token has.
  const uint end = state.position - VKF_SLOT_START(slot_rows[row >> 2u][row & 3u]);
  if (position >= end || (position >= p.sinks && end - position > p.lines - p.sinks)) return;
#else
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  const uint position = state.position - VKF_SLOT_START(entry);
#endif
  if (position >= p.positions) return;
  const uint line = p.k_width + p.v_width;
  const uint to = (row * p.lines + cache_line(position, p.sinks, p.lines)) * line;
  const uint from = slot * p.row_stride;
  for (uint i = gl_LocalInvocationID.x; i < line; i += kLocalSize) {
    const uint column = i < p.k_width ? p.k_offset + i : p.v_offset + (i - p.k_width);
    cache[to + i] = x[from + column];
  }
}
