#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the sum of a unit's chunk states under their common peak, and, causal, of those before
//           each chunk in place
// shapes:   States (units, chunks, W) -> States, Total (B, H, W) by strides and copies; W = M * (Ev
//           + 1) + 2
// mapping:  a workgroup owns kLocalSize words of one unit (x and y fold both), an invocation one
// bounds:   any number of chunks and words
// requires: nothing (baseline)
// variants: linear_attention_scan__f32_f32_f32
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_SCAN_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LinearScanParams p; };
layout(binding = 0) buffer States { float states[]; };
layout(binding = 1) writeonly buffer Total { float total[]; };

void store_total(uint unit, uint word, float value) {
  const uint to =
      p.total_offset + unit / p.heads * p.total_item_stride + unit % p.heads * p.total_head_stride;
  for (uint i = 0u; i < p.copies; ++i) total[to + i * p.total_copy_stride + word] = value;
}

void main() {
  const uint blocks = (p.state_words - 2u + kLocalSize - 1u) / kLocalSize;
  const uint local = row_group_index() / blocks;
  const uint word = row_group_index() % blocks * kLocalSize + gl_LocalInvocationID.x;
  if (local >= p.units || word + 2u >= p.state_words) return;
  const uint base = local * p.chunks * p.state_words;
  const uint peak_word = p.state_words - 2u;
  const bool fades = kFades != 0u && word < p.fading;

  float peak = kFades != 0u ? kLowestFloat : 0.0;  // of the chunks that the sum holds
  if (kHasOne != 0u) {
    for (uint c = 0u; c < p.chunks; ++c) {
      peak = keep_max(peak, states[base + c * p.state_words + peak_word]);
    }
  }
  float sum = 0.0;
  for (uint c = 0u; c < p.chunks; ++c) {
    const uint at = base + c * p.state_words;
    float value = states[at + word];
    if (kFades != 0u) {
      const float own = states[at + peak_word];
      const float now = keep_max(peak, own);
      if (fades) {
        sum *= online_fade(peak, now, 1.0);
        value *= online_fade(own, now, 1.0);
      }
      peak = now;
    }
    if (kCausal != 0u) {
      states[at + word] = sum;
      if (word == 0u) states[at + peak_word + 1u] = peak;
    }
    sum += value;
  }
  store_total(p.first_unit + local, word, sum);
  if (word == 0u) {
    store_total(p.first_unit + local, peak_word, peak);
    store_total(p.first_unit + local, peak_word + 1u, peak);
  }
}
