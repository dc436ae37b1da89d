#version 450
#extension GL_GOOGLE_include_directive : require
// computes: weights = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) of chosen heads, or the scores themselves, -inf where masked
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) by their HeadLayout, Terms (words) -> Y (B, Hsel, T, S)
// mapping:  one workgroup a row (batch, chosen head, query); an invocation owns every kLocalSize-th key and its place in Y
// bounds:   S and E may be anything; rows beyond the last are skipped; a row without an allowed key is zeros
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kWidth = 64;  // E
layout(constant_id = 2) const uint kSoftcap = 0;    // bits of a float; 0: none
layout(constant_id = 3) const uint kRelative = 0;   // VKF_RELATIVE_*; values do not matter here
const uint kValueWidth = 1;

#include "attention.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionWeightsParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) buffer Y { float y[]; };

#define VKF_TERM_HEADS p.heads
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#include "score_terms.glsl"
#include "score_shape.glsl"

shared float q_row[kWidth];                                      // (E)
shared float position_row[(kRelative & VKF_RELATIVE_KEYS) * (kWidth - 1) + 1];  // (E), q for positions

float pair_score(uvec3 place, uint base, uint j) {
  if (!score_allowed(p.terms, place.x, place.y, place.z, j)) return negative_infinity();
  float value = 0.0;
  const uint row = base + j * p.k.row_stride;
  for (uint e = 0u; e < kWidth; ++e) value += q_row[e] * kv[row + e];
  if (kRelative != 0u) {
    const int distance = int(j) - int(place.z) - p.terms.causal_offset;
    const uint positions = relative_key(p.relative, p.heads, place.y, distance);
    for (uint e = 0u; e < kWidth; ++e) value += position_row[e] * kv[positions + e];
  }
  return soft_capped(value * p.scale) + score_bias(p.terms, place.x, place.y, place.z, j);
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint head_row = row / p.queries;
  const uvec3 place = uvec3(head_row / p.heads_out, p.first_head + head_row % p.heads_out,
                            row % p.queries);
  const uint q_base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride +
                      place.z * p.q.row_stride;
  const uint bias = relative_bias(p.relative, p.heads, place.y);
  for (uint e = lane; e < kWidth; e += kLocalSize) {
    q_row[e] = q[q_base + e];
    if (kRelative != 0u) position_row[e] = q_row[e];
    if (!kRelativeBiases) continue;
    q_row[e] += kv[bias + e];
    position_row[e] += kv[bias + p.heads * kWidth + e];
  }
  barrier();
  const uint k_base = p.k.offset + place.x * p.k.batch_stride +
                      place.y / p.heads_per_kv * p.k.head_stride;
  const uint base = row * p.keys;
  const float out_scale = p.raw_scores != 0u ? p.inverse_temperature : 1.0;
  float highest = kLowestFloat;
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float score = pair_score(place, k_base, j);
    highest = keep_max(highest, score);
    y[base + j] = is_negative_infinity(score) ? score : score * out_scale;
  }
  if (p.raw_scores != 0u) return;
  highest = workgroup_max(highest);
  float total = 0.0;
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float weight = online_weight(y[base + j], highest, p.inverse_temperature);
    if (!is_masked_weight(weight)) total += weight;
    y[base + j] = weight;
  }
  total = workgroup_sum(total);
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float weight = y[base + j];
    y[base + j] = is_masked_weight(weight) ? 0.0 : online_result(weight, total);
  }
}
