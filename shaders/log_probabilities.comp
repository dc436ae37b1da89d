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

// The same for every invocation.
LogSum log_sum_of_parts(uint base, uint parts) {
  const uint lane = gl_LocalInvocationID.x;
  float peak = negative_infinity();
  for (uint part = lane; part < parts; part += kLocalSize) {
    const float other = part_sums[base + 2u * part];
    peak = other > peak ? other : peak;
  }
  peak = workgroup_max(peak);
  barrier();
  for (uint first = lane; first < kSumLanes; first += kLocalSize) {
    float sum = 0.0;
    for (uint part = first; part < parts; part += kSumLanes) {
      sum += rescaled(part_sums[base + 2u * part + 1u], part_sums[base + 2u * part], peak);
    }
    reduce_scratch[first] = sum;
  }
  return log_sum_from(peak, sum_of_lanes());
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint parts = gl_NumWorkGroups.y;
  const LogSum log_sum = log_sum_of_parts(2u * slot * parts, parts);
  const uint first = gl_WorkGroupID.y * VKF_VOCAB_PART;
  const uint end = min(p.vocab, first + VKF_VOCAB_PART);
  for (uint v = first + gl_LocalInvocationID.x; v < end; v += kLocalSize) {
    y[slot * p.vocab + v] = log_probability(log_sum, logits[slot * p.vocab + v]);
  }
}
