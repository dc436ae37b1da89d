#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the largest logit and the sum of exp(logit - largest) in each part of a row
// shapes:   Logits (slots, V) -> PartSums (slots, P, 2) with P = ceil(V / VKF_VOCAB_PART)
// mapping:  one workgroup a slot and part; an invocation takes every kLocalSize-th token
// bounds:   any V; slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: log_sum_parts__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "reduce.glsl"
#include "search.h"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) writeonly buffer PartSums { float part_sums[]; };
layout(std140, binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};

#include "log_sum.glsl"

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint first = gl_WorkGroupID.y * VKF_VOCAB_PART;
  const vec2 sum = part_sum_of(slot * p.vocab + first, min(p.vocab - first, VKF_VOCAB_PART));
  if (gl_LocalInvocationID.x != 0u) return;
  const uint at = 2u * (slot * VKF_VOCAB_PARTS(p.vocab) + gl_WorkGroupID.y);
  part_sums[at] = sum.x;
  part_sums[at + 1u] = sum.y;
}
