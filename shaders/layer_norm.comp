#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = (h - mean) / sqrt(variance + epsilon) * gain + bias, h = x [+ residual] (Ba, 2016)
// shapes:   X (R, D), Residual (R, D), GainBias (2, D) -> Y (R, D)
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   D may be anything; rows beyond the last are skipped; Residual may be unused
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kHasResidual = 0;

#include "norm.h"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { NormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Residual { float residual[]; };
layout(binding = 2) readonly buffer GainBias { float gain_bias[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

float input_at(uint index) {
  return kHasResidual != 0u ? x[index] + residual[index] : x[index];
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  const float count = float(p.width);
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) sum += input_at(base + i);
  const float rough_mean = workgroup_sum(sum) / count;
  // The corrected two-pass algorithm (Chan, Golub and LeVeque, 1983): what is left of the mean
  // after the first pass also leaves the variance.
  float differences = 0.0;
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float difference = input_at(base + i) - rough_mean;
    differences += difference;
    squares += difference * difference;
  }
  const float rest = workgroup_sum(differences) / count;
  float variance = workgroup_sum(squares) / count - rest * rest;
  if (variance < 0.0) variance = 0.0;
  const float scale = inversesqrt(variance + p.epsilon);
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float centred = (input_at(base + i) - rough_mean) - rest;
    y[base + i] = centred * scale * gain_bias[i] + gain_bias[p.width + i];
  }
}
