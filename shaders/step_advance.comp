#version 450
#extension GL_GOOGLE_include_directive : require
// computes: packs the live rows to the front, moves to the next position, sizes the next step
// shapes:   Search (params/search.h) -> State, StepIds (R), Args (count, 3) + table (count, 4)
// mapping:  one workgroup in all; one invocation packs, all write
// bounds:   no live row left gives zero workgroups everywhere
// requires: nothing (baseline)
// variants: step_advance_all__u32
layout(local_size_x = 32) in;

#include "decode_state.h"
#include "search.h"
#include "search_layout.glsl"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Search { uint search[]; };
layout(std430, binding = 1) buffer State {
  DecodeState state;
  uint slot_rows[];
};
layout(binding = 2) writeonly buffer StepIds { uint step_ids[]; };
// arg_count commands of three words, then four words per command. They have the live axis (two
// bits) with the slots per workgroup above it. The three group counts follow, where they do not
// depend on live slots.
layout(binding = 3) buffer Args { uint args[]; };

void main() {
  const uint lane = gl_LocalInvocationID.x;
  if (lane == 0u && state.live_items > 0u) {
    uint live = 0u;
    for (uint i = 0u; i < state.live_items; ++i) {
      // Rows of an item follow each other and share its start, so entries count up like rows.
      const uint first = slot_rows[i * p.beams];
      if (search[items_at(p, VKF_SLOT_ROW(first) / p.beams) + VKF_ITEM_ACTIVE] == 0u) continue;
      for (uint j = 0u; j < p.beams; ++j) slot_rows[live * p.beams + j] = first + j;
      ++live;
    }
    state.live_items = live;
    state.live_slots = live * p.beams;
    state.position = state.position + 1u;
    state.steps = state.steps + 1u;
  }
  memoryBarrierBuffer();
  barrier();
  const uint slots = state.live_slots;
  for (uint slot = lane; slot < slots; slot += 32u) {
    step_ids[slot] = search[tokens_at(p, VKF_SLOT_ROW(slot_rows[slot])) + state.position];
  }
  for (uint a = lane; a < p.arg_count; a += 32u) {
    const uint table = 3u * p.arg_count + 4u * a;
    const uint axis = args[table] & 3u;
    const uint per_group = args[table] >> 2u;
    for (uint i = 0u; i < 3u; ++i) {
      args[3u * a + i] = i == axis ? (slots + per_group - 1u) / per_group : args[table + 1u + i];
    }
  }
}
