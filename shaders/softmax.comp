#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(x / temperature + bias) over the allowed keys; a row without one is zeros
// shapes:   X (B, H, T, S), Terms (words of masks and biases) -> Y (B, H, T, S); rows = B * H * T
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th key
// bounds:   S may be anything; rows beyond the last are skipped; a masked X is never used
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: softmax_row__f32_none_f32
//           softmax_row__f32_none_f32_subgroup FEATURES subgroup
#extension GL_EXT_control_flow_attributes : require
#include "softmax.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_SOFTMAX_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { SoftmaxParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Terms { uint terms[]; };
layout(binding = 2) buffer Y { float y[]; };

#define VKF_TERM_HEADS p.heads
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_MAY(kinds) ((kKinds & (kinds)) != 0u)
#include "score_terms.glsl"

const bool kBiased = (kKinds & (VKF_KIND_BIAS | VKF_KIND_DISTANCE | VKF_KIND_SPARSE)) != 0u;
float held[kHeld + 1u];

// The place of a row: batch, head, query.
uvec3 row_place(uint row) {
  const uint head_row = row / p.queries;
  return uvec3(head_row / p.heads, head_row % p.heads, row % p.queries);
}

// What an invocation works on, its n-th key being key lane + n kLocalSize.
float get(uint base, uint n) {
  return kHeld != 0u ? held[n] : y[base + gl_LocalInvocationID.x + n * kLocalSize];
}
void put(uint base, uint n, float value) {
  if (kHeld != 0u)
    held[n] = value;
  else
    y[base + gl_LocalInvocationID.x + n * kLocalSize] = value;
}

// x of key j; -inf where a mask or an infinite bias hides it.
float read_score(uvec3 place, uint base, uint j) {
  if (j >= p.keys || !score_allowed(p.terms, place.x, place.y, place.z, j)) {
    return negative_infinity();
  }
  if (kBiased && is_negative_infinity(score_bias(p.terms, place.x, place.y, place.z, j))) {
    return negative_infinity();
  }
  return x[base + j];
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uvec3 place = row_place(row);
  const uint base = row * p.keys;
  const uint lane = gl_LocalInvocationID.x;
  // Registers for keys beyond the last are masked ones.
  const uint count = kHeld != 0u ? kHeld : (p.keys + kLocalSize - 1u - lane) / kLocalSize;
  // The largest x goes before the division, so that no temperature makes a score overflow.
  float highest = negative_infinity();
  [[unroll]] for (uint n = 0u; n < count; ++n) {
    const float score = read_score(place, base, lane + n * kLocalSize);
    put(base, n, score);
    if (score > highest) highest = score;
  }
  highest = workgroup_max(highest);
  // With a bias the largest sum may be elsewhere; without, the largest is 0.
  float shift = 0.0;
  if (kBiased) {
    shift = negative_infinity();
    [[unroll]] for (uint n = 0u; n < count; ++n) {
      float total = get(base, n);
      if (!is_negative_infinity(total)) {
        const uint j = lane + n * kLocalSize;
        total = (total - highest) * p.inverse_temperature +
                score_bias(p.terms, place.x, place.y, place.z, j);
        if (is_negative_infinity(total)) total = kLowestFloat;
        if (total > shift) shift = total;
      }
      put(base, n, total);
    }
    shift = workgroup_max(shift);
  }
  float sum = 0.0;
  [[unroll]] for (uint n = 0u; n < count; ++n) {
    const float score = get(base, n);
    const float total = kBiased ? score : (score - highest) * p.inverse_temperature;
    const float weight = exp_nonpositive(total - shift);
    const bool masked = is_negative_infinity(score);
    put(base, n, masked ? kMaskedWeight : weight);
    sum += masked ? 0.0 : weight;
  }
  sum = workgroup_sum(sum);
  const float scale = online_result(1.0, sum);
  [[unroll]] for (uint n = 0u; n < count; ++n) {
    const uint j = lane + n * kLocalSize;
    const float weight = get(base, n);
    float value = is_nan(scale) ? scale : weight * scale;
    if (is_masked_weight(weight)) value = 0.0;
    if (j < p.keys) y[base + j] = value;
  }
}
