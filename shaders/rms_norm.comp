#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = x / sqrt(mean(x^2) + epsilon) * gain (Zhang and Sennrich, 2019)
// shapes:   X (..., D), Gain (D) -> Y (..., D); rows = product of the leading dimensions
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   D may be anything; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: rms_norm_row__f32_f32_f32
//           rms_norm_row__f32_f32_f32_subgroup FEATURES subgroup
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "norm.h"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { NormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Gain { float gain[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    squares += x[base + i] * x[base + i];
  }
  const float scale = inversesqrt(workgroup_sum(squares) / float(p.width) + p.epsilon);
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    y[base + i] = x[base + i] * scale * gain[i];
  }
}
