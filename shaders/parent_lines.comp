#version 450
#extension GL_GOOGLE_include_directive : require
// computes: parents[slot] = the line of recurrent states that the slot's token goes on from, that
//           of the position before, of the row that owns it; and the slot with the next token of
//           its row (params/state_scan.h)
// shapes:   Ancestry (R, C), State -> Parents (slots)
// mapping:  an invocation owns a slot (x)
// bounds:   slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: parent_lines_slot__u32
#include "state_scan.h"
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)
layout(local_size_x_id = 0) in;
#include "decode_state.h"

layout(push_constant) uniform Params { ParentLinesParams p; };
layout(binding = 0) readonly buffer Ancestry { uint ancestry[]; };
layout(binding = 1) writeonly buffer Parents { uint parents[]; };
layout(binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};

uint entry_of(uint slot) { return slot_rows[slot >> 2u][slot & 3u]; }

uint row_of(uint slot) { return VKF_SLOT_ROW(entry_of(slot)); }

uint position_of(uint slot) { return state.position - VKF_SLOT_START(entry_of(slot)); }

void main() {
  const uint slot = gl_WorkGroupID.x * kLocalSize + gl_LocalInvocationID.x;
  if (slot >= state.live_slots) return;
  const uint row = row_of(slot);
  const uint position = position_of(slot);
  uint next = VKF_NO_SLOT;
  bool continued = false;
  if (p.runs != 0u) {
    for (uint other = 0u; other < state.live_slots; ++other) {
      const bool own = row_of(other) == row;
      const uint at = position_of(other);
      const bool follows = at == position + 1u;
      const bool precedes = at + 1u == position;
      next = own && follows ? other : next;
      continued = continued || (own && precedes);
    }
  }
  uint line = VKF_LINE_CONTINUED;
  if (!continued) {
    line = VKF_LINE_FRESH;
    if (position > 0u) {
      // A row that is alone has no other parents, and its ancestry may be unwritten.
      const uint owner = p.beams == 1u ? row : ancestry[row * p.positions + position - 1u];
      line = owner * p.lines + (position - 1u) % p.lines;
    }
  }
  parents[slot] = line << 12u | next;
}
