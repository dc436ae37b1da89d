#version 450
#extension GL_GOOGLE_include_directive : require
// computes: S[t] = decay[t] S[t - 1] + k[t] u[t]', y[t] = S[t]' q[t]. u is dt v, or with kDelta b
//           (v - (decay[t] S[t - 1])' k[t]). A prompt leaves its last S in States, a step reads and
//           moves it
// shapes:   X (B, T, W) or (slots, W): q and k (Hk, E), v (H, Ev), rates; Rates (3, H): log A,
//           bias, skip of v, with kDelta (2, H) -> Y as many rows (H, Ev); States (R, L, H, E, Ev)
// mapping:  a workgroup owns kLocalSize / kSplit columns (z) of a head (y) of an item or a slot
//           (x); kSplit invocations have one column of S in registers and go through the tokens
// bounds:   E and Ev may be anything; slots beyond the live ones and tokens beyond a prompt's end
//           are skipped
// requires: nothing (baseline); subgroup shuffles in the _subgroup variants; VKF_PROMPT, VKF_STEP:
//           as in causal_conv.comp
// variants: state_scan_full__f32_none_f32
//           state_scan_prompt__f32_none_f32 DEFINES VKF_PROMPT=1
//           state_scan_step__f32_none_f32 DEFINES VKF_STEP=1
//           state_scan_full__f32_none_f32_subgroup FEATURES subgroup
//           state_scan_prompt__f32_none_f32_subgroup FEATURES subgroup DEFINES VKF_PROMPT=1
//           state_scan_step__f32_none_f32_subgroup FEATURES subgroup DEFINES VKF_STEP=1
#extension GL_EXT_control_flow_attributes : require
#include "state_scan.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_STATE_SCAN_CONSTANTS)

#ifdef VKF_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "activation.glsl"
#include "decode_state.h"
#include "float_bits.glsl"
#include "softplus.glsl"

layout(push_constant) uniform Params { StateScanParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Rates { float rates[]; };
layout(binding = 2) buffer States { float states[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
#if VKF_PROMPT || VKF_STEP
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#endif
#if VKF_STEP
layout(binding = 5) uniform Parents { uvec4 parents[VKF_SLOT_QUADS]; };
#endif

const uint kColumns = kLocalSize / kSplit;
const uint kPart = (kWidth + kSplit - 1u) / kSplit;  // elements of a column that an invocation has
const uint kPadded = kPart * kSplit;

shared float keys[kTokens * kPadded];
shared float queries[kTokens * kPadded];
shared float decays[kTokens];     // of the state
shared float strengths[kTokens];  // of what a token adds
shared float key_scales[kTokens];
shared float query_scales[kTokens];
#ifndef VKF_SUBGROUP
shared float parts[kLocalSize];
#endif

float column[kPart];  // elements part, part + kSplit, ... of a column of S

uint lane_index() {
#ifdef VKF_SUBGROUP
  return gl_SubgroupID * (kLocalSize / gl_NumSubgroups) + gl_SubgroupInvocationID;
#else
  return gl_LocalInvocationID.x;
#endif
}

// The sum over the invocations of a column, the same for all of them.
float column_sum(float value, uint lane) {
  if (kSplit == 1u) return value;
#ifdef VKF_SUBGROUP
  for (uint step = 1u; step < kSplit; step *= 2u) {
    value += subgroupShuffle(value, gl_SubgroupInvocationID ^ step);
  }
  return value;
#else
  barrier();
  parts[lane] = value;
  barrier();
  const uint first = lane / kSplit * kSplit;
  value = parts[first];
  for (uint i = 1u; i < kSplit; ++i) value += parts[first + i];
  return value;
#endif
}

// Keys, queries, decays and strengths of `count` tokens, of rows of X from `row` on.
void stage(uint row, uint count, uint head) {
  const uint lane = gl_LocalInvocationID.x;
  const uint shared_head = head / p.sharing * kWidth;
  barrier();
  [[dont_unroll]] for (uint i = lane; i < count * kPadded; i += kLocalSize) {
    const uint at = (row + i / kPadded) * p.width + shared_head + i % kPadded;
    const bool inside = i % kPadded < kWidth;
    keys[i] = inside ? x[at + p.k_offset] : 0.0;
    queries[i] = inside ? x[at + p.q_offset] : 0.0;
  }
  [[dont_unroll]] for (uint t = lane; t < count; t += kLocalSize) {
    const uint at = (row + t) * p.width + head;
    const float raw = softplus_any(x[at + p.a_offset] + rates[p.heads + head]);
    const float rate = kDelta != 0u ? raw : between(raw, p.least_rate, p.most_rate);
    decays[t] = exp_of(-exp_of(rates[head]) * rate);
    strengths[t] = kDelta != 0u ? apply_activation(x[at + p.b_offset], kActivationSigmoid) : rate;
    key_scales[t] = 1.0;
    query_scales[t] = p.q_scale;
  }
  barrier();
  if (kNormed == 0u) return;
  [[dont_unroll]] for (uint i = lane; i < 2u * count; i += kLocalSize) {
    const uint t = i >> 1u;
    float squares = 0.0;
    for (uint e = 0u; e < kWidth; ++e) {
      const float value = (i & 1u) != 0u ? queries[t * kPadded + e] : keys[t * kPadded + e];
      squares += value * value;
    }
    const float scale = inversesqrt(squares + p.norm_epsilon);
    if ((i & 1u) != 0u) query_scales[t] = p.q_scale * scale;
    if ((i & 1u) == 0u) key_scales[t] = scale;
  }
  barrier();
}

// Token t of those staged: takes v into the column of S and returns y.
float take_token(uint t, float v, uint part, uint lane) {
  const float decay = decays[t];
  float known = 0.0;
  if (kDelta != 0u) {
    for (uint i = 0u; i < kPart; ++i) {
      column[i] *= decay;
      known += keys[t * kPadded + i * kSplit + part] * column[i];
    }
    known = column_sum(known, lane) * key_scales[t];
  }
  const float added = key_scales[t] * strengths[t] * (v - known);
  float result = 0.0;
  for (uint i = 0u; i < kPart; ++i) {
    const uint at = t * kPadded + i * kSplit + part;
    column[i] = (kDelta != 0u ? column[i] : decay * column[i]) + keys[at] * added;
    result += queries[at] * column[i];
  }
  return column_sum(result, lane) * query_scales[t];
}

uint state_at(uint line, uint head, uint index, uint i) {
  return ((line * p.heads + head) * kWidth + i) * p.value_width + index;
}

void load_state(uint line, uint head, uint index, uint part) {
  for (uint i = 0u; i < kPart; ++i) {
    const uint e = i * kSplit + part;
    if (e < kWidth && index < p.value_width) column[i] = states[state_at(line, head, index, e)];
  }
}

void store_state(uint line, uint head, uint index, uint part) {
  for (uint i = 0u; i < kPart; ++i) {
    const uint e = i * kSplit + part;
    if (e < kWidth && index < p.value_width) states[state_at(line, head, index, e)] = column[i];
  }
}

#if VKF_STEP
uint parent_of(uint slot) { return parents[slot >> 2u][slot & 3u]; }
#endif

// Token t of those staged, in row `row` of X and of Y.
void take_row(uint row, uint t, uint head, uint index, uint part, uint lane) {
  const bool inside = index < p.value_width;
  const float v = inside ? x[row * p.width + p.v_offset + head * p.value_width + index] : 0.0;
  const float value = take_token(t, v, part, lane);
  if (!inside || part != 0u) return;
  const uint at = (row * p.heads + head) * p.value_width + index;
  y[at] = kDelta != 0u ? value : value + rates[2u * p.heads + head] * v;
}

void main() {
  const uint lane = lane_index();
  const uint head = gl_WorkGroupID.y;
  const uint index = gl_WorkGroupID.z * kColumns + lane / kSplit;
  const uint part = lane % kSplit;
  for (uint i = 0u; i < kPart; ++i) column[i] = 0.0;
#if VKF_STEP
  const uint first = gl_WorkGroupID.x;
  if (first >= state.live_slots) return;
  const uint parent = VKF_PARENT_LINE(parent_of(first));
  if (parent == VKF_LINE_CONTINUED) return;
  if (parent != VKF_LINE_FRESH) load_state(parent, head, index, part);
  uint left = 0u;  // tokens of the row after this one
  for (uint slot = VKF_NEXT_SLOT(parent_of(first)); slot != VKF_NO_SLOT; ++left) {
    slot = VKF_NEXT_SLOT(parent_of(slot));
  }
  const uint entry = slot_rows[first >> 2u][first & 3u];
  uint position = state.position - VKF_SLOT_START(entry);
  for (uint slot = first; slot != VKF_NO_SLOT; slot = VKF_NEXT_SLOT(parent_of(slot))) {
    stage(slot, 1u, head);
    take_row(slot, 0u, head, index, part, lane);
    // Of many tokens only the last lines are left, which the row may go back to.
    if (left < p.lines) {
      store_state(VKF_SLOT_ROW(entry) * p.lines + position % p.lines, head, index, part);
    }
    ++position;
    --left;
  }
#else
  const uint item = gl_WorkGroupID.x;
  const uint first = item * p.tokens + p.first;
#if VKF_PROMPT
  const uint row = item * p.beams;
  const uint end = state.position - VKF_SLOT_START(slot_rows[row >> 2u][row & 3u]);
  if (end <= p.first) return;
  const uint count = min(p.count, end - p.first);
  const uint line = row * p.lines + (end - 1u) % p.lines;
#else
  const uint count = p.count;
  const uint line = item;
#endif
  if (p.first > 0u) load_state(line, head, index, part);
  for (uint t0 = 0u; t0 < count; t0 += kTokens) {
    const uint staged = min(kTokens, count - t0);
    stage(first + t0, staged, head);
    [[dont_unroll]] for (uint t = 0u; t < staged; ++t) {
      take_row(first + t0 + t, t, head, index, part, lane);
    }
  }
  if (kStore != 0u) store_state(line, head, index, part);
#endif
}
