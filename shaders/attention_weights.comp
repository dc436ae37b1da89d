#version 450
#extension GL_GOOGLE_include_directive : require
// computes: weights = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) of
//           chosen heads, or the scores themselves, -inf where masked
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) by their HeadLayout, Terms (words) -> Y (B, Hsel,
//           T, S)
// mapping:  one workgroup a row (batch, chosen head, query); an invocation owns every kLocalSize-th
//           key and its place in Y
// bounds:   S and E may be anything, kQuads needs rows of k and E in multiples of 4; rows beyond
//           the last are skipped; a row without an allowed key is zeros
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: attention_weights_row__f32_f32_f32
//           attention_weights_row__f32_f32_f32_subgroup FEATURES subgroup
#extension GL_EXT_control_flow_attributes : require
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_WEIGHTS_CONSTANTS)
const uint kValueWidth = 1;
const uint kStep = kQuads != 0u ? 4u : 1u;  // elements of a load

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionWeightsParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 1) readonly buffer KvQuads { vec4 kv_quads[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) buffer Y { float y[]; };

#define VKF_TERM_HEADS p.heads
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY(kinds) ((kKinds & (kinds)) != 0u)
#include "score_terms.glsl"
#include "score_shape.glsl"
#include "sink_terms.glsl"

// (E) in quads, and q for positions; where k is read one by one, a quad holds one element.
const uint kParts = (kWidth + kStep - 1u) / kStep;
shared vec4 q_row[kParts];
shared vec4 position_row[(kRelative & VKF_RELATIVE_KEYS) * (kParts - 1u) + 1u];

// A part of the row of k or of positions that starts at `row`.
vec4 load_part(uint row, uint part) {
  if (kQuads != 0u) return kv_quads[(row >> 2u) + part];
  return vec4(kv[row + part], 0.0, 0.0, 0.0);
}

float multiply(vec4 a, vec4 b) { return kQuads != 0u ? dot(a, b) : a.x * b.x; }

float pair_score(uvec3 place, uint base, uint j) {
  if (!score_allowed(p.terms, place.x, place.y, place.z, j)) return negative_infinity();
  float value = 0.0;
  const uint row = base + j * p.k.row_stride;
  for (uint e = 0u; e < kParts; ++e) value += multiply(q_row[e], load_part(row, e));
  if (kRelative != 0u) {
    const int distance = int(j) - int(place.z) - p.terms.causal_offset;
    const uint positions = relative_key(p.relative, p.heads, place.y, distance);
    for (uint e = 0u; e < kParts; ++e) {
      value += multiply(position_row[e], load_part(positions, e));
    }
    if (kRelativeProducts) {
      value += kv[relative_product(p.relative, p.heads, place.x * p.heads + place.y, p.keys, j,
                                   distance)];
    }
    if (kRelativeQueries) {
      const uint queries = relative_query(p.relative, p.heads, place.y, distance);
      // Unrolled, the key would stay in registers since its products with the query.
      [[dont_unroll]] for (uint e = 0u; e < kParts; ++e) {
        value += multiply(load_part(row, e), load_part(queries, e));
      }
    }
  }
  return soft_capped(value * p.scale) + score_bias(p.terms, place.x, place.y, place.z, j);
}

// The query, with the biases that relative positions may have.
void load_query(uvec3 place) {
  const uint q_base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride +
                      place.z * p.q.row_stride;
  const uint bias = relative_bias(p.relative, p.heads, place.y);
  for (uint part = gl_LocalInvocationID.x; part < kParts; part += kLocalSize) {
    vec4 content = vec4(0.0);
    vec4 offset = vec4(0.0);
    for (uint i = 0u; i < kStep; ++i) {
      const uint e = part * kStep + i;
      content[i] = q[q_base + e];
      offset[i] = content[i];
      if (!kRelativeBiases) continue;
      content[i] += kv[bias + e];
      offset[i] += kv[bias + p.heads * kWidth + e];
    }
    q_row[part] = content;
    if (kRelative != 0u) position_row[part] = offset;
  }
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint head_row = row / p.queries;
  const uvec3 place =
      uvec3(head_row / p.heads_out, p.first_head + head_row % p.heads_out, row % p.queries);
  load_query(place);
  barrier();
  const uint k_base =
      p.k.offset + place.x * p.k.batch_stride + place.y / p.heads_per_kv * p.k.head_stride;
  const uint base = row * p.keys;
  const float out_scale = p.raw_scores != 0u ? p.inverse_temperature : 1.0;
  float highest = kLowestFloat;
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float score = pair_score(place, k_base, j);
    highest = keep_max(highest, score);
    y[base + j] = is_negative_infinity(score) ? score : score * out_scale;
  }
  if (p.raw_scores != 0u) return;
  const float sink = sink_score(place.y);
  highest = keep_max(workgroup_max(highest), sink);
  if (is_nan(sink)) highest = sink;
  float total = lane == 0u && !is_negative_infinity(sink)
                    ? online_weight(sink, highest, p.inverse_temperature)
                    : 0.0;
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
