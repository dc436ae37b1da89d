#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((softcap(scale q k^T) + alibi + bias) / temperature) v in one pass over the
//           keys (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, E), Terms (words) -> Y (B, H, T,
//           E), each by its HeadLayout; E = 64
// mapping:  a workgroup owns four queries of one head, an invocation one of them, with its sums in
//           memory; four keys pass by at a time. A row of k or v is a separate buffer in set 1, so
//           that each element has a literal offset from one address
// bounds:   T and S may be ragged; S that is no multiple of 4 needs kKinds != 0; offset and strides
//           of k and v are whole rows
// requires: the bytes of k and v, the buffer of binding 1, row by row in set 1; neither sparse
//           terms nor relative positions
// variants: attention_stationary__f32_f32_f32_tables UNROLLED FEATURES tables software
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_nonuniform_qualifier : require
#include "attention.h"
layout(local_size_x = 4) in;
VKF_CONSTANTS(VKF_ATTENTION_STATIONARY_CONSTANTS)
const uint kWidth = 64u, kValueWidth = 64u, kRelative = 0u;
const uint kKeys = 4u;  // of a round

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(set = 1, binding = 0) readonly buffer Row { float x[]; }
rows[];

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY(kind) ((kKinds & (kind)) != 0u)
#define VKF_TERM_MAY_SPARSE false
#include "key_range.glsl"
#include "score_terms.glsl"
#include "score_shape.glsl"
#include "sink_terms.glsl"

float query[kWidth];
float sum[kValueWidth];
float score[kKeys];  // then the weights
float highest, total;

// score = q k^T for the rows that begin with `row`, the last one repeated.
void dot_keys(uint row, uint stride, uint left) {
  uint key[kKeys];
  [[unroll]] for (uint n = 0u; n < kKeys; ++n) {
    key[n] = row + min(n, left) * stride;
    score[n] = 0.0;
  }
  [[unroll]] for (uint e = 0u; e < kWidth; ++e) {
    const float x = query[e];
    [[unroll]] for (uint n = 0u; n < kKeys; ++n) { score[n] = fma(rows[key[n]].x[e], x, score[n]); }
  }
}

// Scale, cap, terms and masks of the scores of keys j and on; -inf where masked, or beyond the
// range. No branches: this compiler takes both sides of one, and pays for it.
void finish_scores(uvec2 place, uint i, uint j, uvec2 range) {
  uint allowed = ~0u;
  if (VKF_TERM_MAY(VKF_KIND_MASKS)) {
    allowed = allowed_bits(p.terms, place.x, place.y, i, j) >> (j & 31u);
  }
  [[unroll]] for (uint n = 0u; n < kKeys; ++n) {
    float value = soft_capped(score[n] * p.scale);
    if (VKF_TERM_MAY(VKF_KIND_BIAS | VKF_KIND_DISTANCE)) {
      value += score_bias(p.terms, place.x, place.y, i, min(j + n, p.keys - 1u));
    }
    const uint inside = mix(0u, 1u, j + n - range.x < range.y);
    const bool seen = kKinds == 0u || (inside & (allowed >> n)) != 0u;
    score[n] = mix(negative_infinity(), value, seen);
  }
}

// Scores become weights, 0 where masked; what the sums are still worth.
float update_weights(out uint seen[kKeys]) {
  float now = highest;
  [[unroll]] for (uint n = 0u; n < kKeys; ++n) now = keep_max(now, score[n]);
  const float fade = online_fade(highest, now, p.inverse_temperature);
  highest = now;
  total *= fade;
  [[unroll]] for (uint n = 0u; n < kKeys; ++n) {
    seen[n] = is_negative_infinity(score[n]) ? 0u : ~0u;
    const uint weight = floatBitsToUint(exp_nonpositive((score[n] - now) * p.inverse_temperature));
    score[n] = uintBitsToFloat(weight & seen[n]);
    total += score[n];
  }
  return fade;
}

// sum = sum fade + weights times values. What a masked weight meets may be anything.
void add_values(uint row, uint stride, uint left, float fade, uint seen[kKeys]) {
  uint key[kKeys];
  [[unroll]] for (uint n = 0u; n < kKeys; ++n) key[n] = row + min(n, left) * stride;
  [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) {
    float v = sum[e] * fade;
    [[unroll]] for (uint n = 0u; n < kKeys; ++n) {
      const float x = rows[key[n]].x[e];
      const float counted = uintBitsToFloat(floatBitsToUint(x) & seen[n]);
      v = fma(mix(x, counted, kKinds != 0u), score[n], v);
    }
    sum[e] = v;
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = gl_WorkGroupID.x * 4u;
  const uint last = min(first + 4u, p.queries) - 1u;
  const uint i = min(first + gl_LocalInvocationID.x, last);
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint k_row = (p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride) / kWidth;
  const uint v_row = (p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride) / kWidth;
  const uint k_stride = p.k.row_stride / kWidth, v_stride = p.v.row_stride / kWidth;
  const uint q_base =
      p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride + i * p.q.row_stride;
  for (uint e = 0u; e < kWidth; ++e) {
    query[e] = q[q_base + e];
    sum[e] = 0.0;
  }
  const float sink = sink_score(place.y);
  highest = sink_highest(sink);
  total = sink_total(sink);
  const uvec2 all = key_range(p.terms, first, last);
  const uint end = all.y;
  uint j = min(all.x, p.keys - 1u) & ~(kKeys - 1u);  // bits of masks come by whole rounds
  // What the query sees of it: the first key, and how many.
  uvec2 range = key_range(p.terms, i, i);
  range.y = max(range.x, range.y) - range.x;
  // Loops go round once at least, and lie two deep, for the reasons that matmul_slabs gives.
  do {
    const uint stop = min(j + 512u, end);
    do {
      const uint left = p.keys - 1u - j;
      dot_keys(k_row + j * k_stride, k_stride, left);
      finish_scores(place, i, j, range);
      uint seen[kKeys];
      const float fade = update_weights(seen);
      add_values(v_row + j * v_stride, v_stride, left, fade, seen);
      j += kKeys;
    } while (j < stop);
  } while (j < end);
  if (first + gl_LocalInvocationID.x > last) return;
  const uint y_base = place.x * p.y.batch_stride + place.y * p.y.head_stride + i * p.y.row_stride;
  for (uint e = 0u; e < kValueWidth; ++e) y[y_base + e] = online_result(sum[e], total);
}
