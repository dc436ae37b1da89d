#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y[t] = act(bias + sum_k w[k] g[t - K + 1 + k]), g = x; with kGated g = x * in gate, and
//           y is times an out gate; other columns are copied; a prompt leaves its last K - 1 g in
//           States, a step reads and moves them
// shapes:   X (B, T, W) or (slots, W), Taps (K, C), with kHasBias (K + 1, C) -> Y as many rows of
//           out_width; Mask (B, ceil(T/32)) or States (R, L, K - 1, C)
// mapping:  a workgroup owns p.block columns (z) of a row (x, y); an invocation every kLocalSize-th
// bounds:   W and C may be anything; masked tokens count as zeros; rows beyond the last or live
//           ones are skipped
// requires: nothing (baseline); VKF_PROMPT: a generation's prompt; VKF_STEP: tokens of live slots,
//           of which those of one row go to the first one's workgroup
// variants: causal_conv_full__f32_f32_f32
//           causal_conv_prompt__f32_f32_f32 DEFINES VKF_PROMPT=1
//           causal_conv_step__f32_f32_f32 DEFINES VKF_STEP=1
#include "causal_conv.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_CAUSAL_CONV_CONSTANTS)

#include "activation.glsl"
#include "decode_state.h"
#include "rows.glsl"
#include "state_scan.h"

layout(push_constant) uniform Params { CausalConvParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Taps { float taps[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
#if VKF_PROMPT
layout(binding = 3) writeonly buffer States { float states[]; };
#elif VKF_STEP
layout(binding = 3) buffer States { float states[]; };
#else
layout(binding = 3) readonly buffer Mask { uint mask[]; };
#endif
#if VKF_PROMPT || VKF_STEP
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#endif
#if VKF_STEP
layout(binding = 5) uniform Parents { uvec4 parents[VKF_SLOT_QUADS]; };
#endif

float input_of(uint row, uint channel) {
  const uint at = row * p.width + channel;
  return kGated != 0u ? x[at + p.first] * x[at + p.in_gate] : x[at + p.first];
}

// A sum of taps and bias -> y of that channel.
float output_of(uint row, uint channel, float sum) {
  const float value = apply_activation(sum, kActivation);
  return kGated != 0u ? value * x[row * p.width + p.out_gate + channel] : value;
}

float bias_of(uint channel) { return kHasBias != 0u ? taps[kTaps * p.channels + channel] : 0.0; }

// Whether a column of Y is a channel's.
bool is_channel(uint column) { return column >= p.to && column < p.to + p.channels; }

#if VKF_STEP
uint parent_of(uint slot) { return parents[slot >> 2u][slot & 3u]; }

// All tokens of a row that this step has, of one channel.
void step_channel(uint first_slot, uint channel) {
  float past[kTaps];  // the last one is unused
  const uint parent = VKF_PARENT_LINE(parent_of(first_slot));
  const bool fresh = parent == VKF_LINE_FRESH;
  for (uint k = 0u; k + 1u < kTaps; ++k) {
    const uint from = fresh ? 0u : parent * (kTaps - 1u);
    const float left = states[(from + k) * p.channels + channel];
    past[k] = fresh ? 0.0 : left;
  }
  uint slot = first_slot;
  do {
    const float value = input_of(slot, channel);
    float sum = bias_of(channel);
    for (uint k = 0u; k + 1u < kTaps; ++k) sum += taps[k * p.channels + channel] * past[k];
    sum += taps[(kTaps - 1u) * p.channels + channel] * value;
    y[slot * p.out_width + p.to + channel] = output_of(slot, channel, sum);
    const uint entry = slot_rows[slot >> 2u][slot & 3u];
    const uint position = state.position - VKF_SLOT_START(entry);
    const uint line = VKF_SLOT_ROW(entry) * p.lines + position % p.lines;
    for (uint k = 0u; k + 1u < kTaps; ++k) {
      const float next = past[min(k + 1u, kTaps - 1u)];
      past[k] = k + 2u < kTaps ? next : value;
      states[(line * (kTaps - 1u) + k) * p.channels + channel] = past[k];
    }
    slot = VKF_NEXT_SLOT(parent_of(slot));
  } while (slot != VKF_NO_SLOT);
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint begin = gl_WorkGroupID.z * p.block, end = min(begin + p.block, p.out_width);
  const bool first = VKF_PARENT_LINE(parent_of(slot)) != VKF_LINE_CONTINUED;
  for (uint column = begin + gl_LocalInvocationID.x; column < end; column += kLocalSize) {
    if (!is_channel(column)) {
      y[slot * p.out_width + column] = x[slot * p.width + column];
    } else if (first) {
      step_channel(slot, column - p.to);
    }
  }
}
#else
bool kept(uint item, uint token) {
#if VKF_PROMPT
  return true;
#else
  if (kHasMask == 0u) return true;
  return (mask[item * ((p.tokens + 31u) >> 5u) + (token >> 5u)] >> (token & 31u) & 1u) != 0u;
#endif
}

#if VKF_PROMPT
// The last K - 1 inputs of a prompt of `end` tokens, zeros where it has fewer.
void leave_input(uint item, uint token, uint end, uint channel) {
  if (end == 0u || token >= end) return;
  const uint row = item * p.beams;
  const uint line = (row * p.lines + (end - 1u) % p.lines) * (kTaps - 1u);
  if (token + kTaps > end) {
    const uint k = token + kTaps - 1u - end;
    states[(line + k) * p.channels + channel] = input_of(item * p.tokens + token, channel);
  }
  if (token > 0u) return;
  for (uint k = 0u; k + 1u + end < kTaps; ++k) states[(line + k) * p.channels + channel] = 0.0;
}
#endif

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint item = row / p.tokens, token = row % p.tokens;
  const bool own = kept(item, token);
#if VKF_PROMPT
  const uint slot = item * p.beams;
  const uint prompt_end = state.position - VKF_SLOT_START(slot_rows[slot >> 2u][slot & 3u]);
#endif
  const uint begin = gl_WorkGroupID.z * p.block, end = min(begin + p.block, p.out_width);
  for (uint column = begin + gl_LocalInvocationID.x; column < end; column += kLocalSize) {
    float value = 0.0;
    if (!is_channel(column)) {
      if (own) value = x[row * p.width + column];
    } else if (own) {
      const uint channel = column - p.to;
      float sum = bias_of(channel);
      for (uint k = 0u; k < kTaps; ++k) {
        const uint back = kTaps - 1u - k;
        const bool inside = token >= back;
        const uint from = inside ? back : 0u;
        const bool taken = kept(item, token - from);
        const float added = sum + taps[k * p.channels + channel] * input_of(row - from, channel);
        sum = inside && taken ? added : sum;
      }
      value = output_of(row, channel, sum);
#if VKF_PROMPT
      if (kTaps > 1u) leave_input(item, token, prompt_end, channel);
#endif
    }
    y[row * p.out_width + column] = value;
  }
}
#endif
