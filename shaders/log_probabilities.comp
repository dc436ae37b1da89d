#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the log-softmax of rows of several parts
// shapes:   Logits (slots, V), PartSums (slots, P, 2) of log_sum_parts -> Y (slots, V)
// mapping:  one workgroup a slot and part; an invocation takes every kLocalSize-th token
// bounds:   any V; slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: log_probabilities_row__f32_f32_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "reduce.glsl"
#include "search.h"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) readonly buffer PartSums { float part_sums[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(std140, binding = 3) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};

#include "log_sum.glsl"

uint sums_base;
vec2 part_sum(uint part) {
  const uint at = sums_base + 2u * part;
  return vec2(part_sums[at], part_sums[at + 1u]);
}
#include "log_sum_of_parts.glsl"

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint parts = VKF_VOCAB_PARTS(p.vocab);
  sums_base = 2u * slot * parts;
  const LogSum log_sum = log_sum_of_parts(parts);
  const uint first = gl_WorkGroupID.y * VKF_VOCAB_PART;
  const uint end = min(p.vocab, first + VKF_VOCAB_PART);
  for (uint v = first + gl_LocalInvocationID.x; v < end; v += kLocalSize) {
    y[slot * p.vocab + v] = log_probability(log_sum, logits[slot * p.vocab + v]);
  }
}
