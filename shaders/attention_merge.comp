#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = sum_p f_p s_p / sum_p f_p w_p, f_p = exp(m_p - max m): what attention_decode made
//           of parts of the keys, each with its largest score m, its weights' sum w and sums of
//           values s (Milakov and Gimelshein 2018)
// shapes:   Parts (slots, H, P, Ev + 2): m, w, s -> Y (slots, H * Ev)
// mapping:  a workgroup owns one slot (x) and head (y); an invocation every kLocalSize-th column
// bounds:   P and Ev may be anything; a part that saw no key has w = 0 and is omitted; slots beyond
//           the live ones are skipped
// requires: nothing (baseline)
// variants: attention_merge__f32_none_f32
#extension GL_EXT_control_flow_attributes : require
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

// Parts whose loads are under way at a time, their scores, and their weights, 0 where no key was
// seen.
const uint kBatch = kParts < 8u ? kParts : 8u;
float score[kBatch];
float weight[kBatch];

// Where part n lies; the last one for those beyond it.
uint part_at(uint first, uint n) { return first + min(n, kParts - 1u) * (kValueWidth + 2u); }

void load_scores(uint first, uint begin) {
  [[unroll]] for (uint n = 0u; n < kBatch; ++n) {
    const uint at = part_at(first, begin + n);
    score[n] = parts[at];
    weight[n] = parts[at + 1u];
  }
}

bool saw_keys(uint n) { return floatBitsToUint(weight[n]) != 0u; }

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint head = gl_WorkGroupID.y;
  const uint first = (slot * p.heads + head) * kParts * (kValueWidth + 2u);
  float highest = kLowestFloat;
  for (uint begin = 0u; begin < kParts; begin += kBatch) {
    load_scores(first, begin);
    [[unroll]] for (uint n = 0u; n < kBatch; ++n) {
      if (saw_keys(n)) highest = keep_max(highest, score[n]);
    }
  }
  for (uint column = gl_LocalInvocationID.x; column < kValueWidth; column += kLocalSize) {
    float sum = 0.0;
    float total = 0.0;
    for (uint begin = 0u; begin < kParts; begin += kBatch) {
      if (kParts > kBatch) load_scores(first, begin);
      float value[kBatch];
      [[unroll]] for (uint n = 0u; n < kBatch; ++n) {
        value[n] = parts[part_at(first, begin + n) + 2u + column];
      }
      [[unroll]] for (uint n = 0u; n < kBatch; ++n) {
        if (begin + n >= kParts || !saw_keys(n)) continue;
        const float fade = score[n] < highest ? online_fade(score[n], highest, 1.0) : 1.0;
        total += weight[n] * fade;
        sum += value[n] * fade;
      }
    }
    y[slot * p.y_stride + head * kValueWidth + column] = online_result(sum, total);
  }
}
