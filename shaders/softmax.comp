#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(x / temperature + bias) over the allowed keys; a row without one is zeros
// shapes:   X (B, H, T, S), Terms (words of masks and biases) -> Y (B, H, T, S); rows = B * H * T
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th key
// bounds:   S may be anything; rows beyond the last are skipped; a masked X is never used
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"
#include "softmax.h"

layout(push_constant) uniform Params { SoftmaxParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Terms { uint terms[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

#define VKF_TERM_HEADS p.heads
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#include "score_terms.glsl"

// The place of a row: batch, head, query.
uvec3 row_place(uint row) {
  const uint head_row = row / p.queries;
  return uvec3(head_row / p.heads, head_row % p.heads, row % p.queries);
}

// Is key j allowed and its score above -inf? If so, `score` and `bias` are its two parts.
bool read_score(uvec3 place, uint base, uint j, out float score, out float bias) {
  score = 0.0;
  bias = 0.0;
  if (!score_allowed(p.terms, place.x, place.y, place.z, j)) return false;
  score = x[base + j];
  bias = score_bias(p.terms, place.x, place.y, place.z, j);
  return !is_negative_infinity(score) && !is_negative_infinity(bias);
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uvec3 place = row_place(row);
  const uint base = row * p.keys;
  float score;
  float bias;
  // The largest x goes before the division, so that no temperature makes a score overflow.
  float highest = negative_infinity();
  for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
    if (read_score(place, base, j, score, bias) && score > highest) highest = score;
  }
  highest = workgroup_max(highest);
  // With a bias the largest sum may be elsewhere; without, the largest is 0.
  float shift = 0.0;
  if (p.terms.bias_offset != VKF_NO_TERM || p.terms.slopes_offset != VKF_NO_TERM) {
    shift = negative_infinity();
    for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
      if (!read_score(place, base, j, score, bias)) continue;
      const float total = (score - highest) * p.inverse_temperature + bias;
      if (total > shift) shift = total;
    }
    shift = workgroup_max(shift);
  }
  float sum = 0.0;
  for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
    if (!read_score(place, base, j, score, bias)) continue;
    sum += exp_nonpositive((score - highest) * p.inverse_temperature + bias - shift);
  }
  sum = workgroup_sum(sum);
  const float scale = sum == 0.0 ? 0.0 : 1.0 / sum;
  for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
    float value = 0.0;
    if (read_score(place, base, j, score, bias)) {
      value = exp_nonpositive((score - highest) * p.inverse_temperature + bias - shift) * scale;
      if (is_nan(scale)) value = scale;
    }
    y[base + j] = value;
  }
}
