#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the weights that linear attention never holds, for chosen heads: w_ij / (sum_j w_ij +
//           epsilon), w_ij = f_i . f_j
// shapes:   F: queries (units, T, M), keys (units, S, M + 1), Total (B, H, W) -> Y (B, Hsel, T, S)
// mapping:  a workgroup owns one query (x and y fold units and queries); an invocation every
//           kLocalSize-th key
// bounds:   T, S and M may be anything; masked keys get 0
// requires: nothing (baseline)
// variants: linear_attention_weights__f32_f32_f32
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_WEIGHTS_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LinearWeightsParams p; };
layout(binding = 0) readonly buffer F { float f[]; };
layout(binding = 1) readonly buffer Total { float totals[]; };
layout(binding = 2) buffer Y { float y[]; };

float weight_of(uint query, uint key, float peak) {
  float weight = 0.0;
  for (uint n = 0u; n < p.features; ++n) {
    float value = f[key + n];
    const bool one = kHasOne != 0u && n + 1u == p.features;
    if (kFades != 0u && !one) value = exp_nonpositive(value - peak);
    weight += f[query + n] * value;
  }
  return weight;
}

void main() {
  const uint local = row_group_index() / p.queries;
  const uint query = row_group_index() % p.queries;
  const uint unit = p.first_unit + local;
  const uint head = unit % p.heads - p.first_head;  // wraps below the first
  if (local >= p.units || head >= p.heads_out) return;
  const uint from = (local * p.queries + query) * p.features;
  const uint keys = p.k_offset + local * p.keys * (p.features + 1u);
  const uint to = ((unit / p.heads * p.heads_out + head) * p.queries + query) * p.keys;
  const float peak = totals[(unit + 1u) * p.state_words - 1u];
  float sum = 0.0;
  for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
    const uint key = keys + j * (p.features + 1u);
    const bool seen = (kCausal == 0u || j <= query) && !is_negative_infinity(f[key + p.features]);
    const float weight = seen ? weight_of(from, key, peak) : 0.0;
    y[to + j] = weight;
    sum += weight;
  }
  sum = workgroup_sum(sum) + p.epsilon;
  for (uint j = gl_LocalInvocationID.x; j < p.keys; j += kLocalSize) {
    y[to + j] = online_result(y[to + j], sum);
  }
}
