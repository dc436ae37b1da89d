#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = sum_p f_p s_p / sum_p f_p w_p, f_p = exp(m_p - max m): what attention_decode made of parts of the keys, each with its largest score m, its weights' sum w and sums of values s (Milakov and Gimelshein 2018)
// shapes:   Parts (slots, H, P, Ev + 2): m, w, s -> Y (slots, H * Ev)
// mapping:  a workgroup owns one slot (x) and head (y); an invocation every kLocalSize-th column
// bounds:   P and Ev may be anything; a part that saw no key has w = 0 and is left out; slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: attention_merge__f32_none_f32
#include "attention_merge.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_MERGE_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"

layout(push_constant) uniform Params { AttentionMergeParams p; };
layout(binding = 0) readonly buffer Parts { float parts[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};

bool saw_keys(uint at) { return floatBitsToUint(parts[at + 1u]) != 0u; }

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint head = gl_WorkGroupID.y;
  const uint first = (slot * p.heads + head) * kParts * (kValueWidth + 2u);
  const uint end = first + kParts * (kValueWidth + 2u);
  float highest = kLowestFloat;
  for (uint at = first; at < end; at += kValueWidth + 2u) {
    if (saw_keys(at)) highest = keep_max(highest, parts[at]);
  }
  for (uint column = gl_LocalInvocationID.x; column < kValueWidth; column += kLocalSize) {
    float sum = 0.0;
    float total = 0.0;
    for (uint at = first; at < end; at += kValueWidth + 2u) {
      if (!saw_keys(at)) continue;
      const float fade = parts[at] < highest ? online_fade(parts[at], highest, 1.0) : 1.0;
      total += parts[at + 1u] * fade;
      sum += parts[at + 2u + column] * fade;
    }
    y[slot * p.y_stride + head * kValueWidth + column] = online_result(sum, total);
  }
}
