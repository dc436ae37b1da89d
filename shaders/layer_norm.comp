#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = (h - mean) / sqrt(variance + epsilon) * gain + bias, h = x [+ residual] (Ba, 2016)
// shapes:   X (R, D), Residual (R, D), GainBias (2, D) -> Y (R, D)
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   D may be anything; rows beyond the last are skipped; Residual may be unused
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: layer_norm_row__f32_f32_f32
//           layer_norm_row__f32_f32_f32_subgroup FEATURES subgroup
#include "norm.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LAYER_NORM_CONSTANTS)

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { NormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Residual { float residual[]; };
layout(binding = 2) readonly buffer GainBias { float gain_bias[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

uint row_base = 0u;
float row_value(uint column) {
  const uint index = row_base + column;
  return kHasResidual != 0u ? x[index] + residual[index] : x[index];
}
#include "layer_norm_row.glsl"

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  row_base = row * p.width;
  const RowMoments moments = row_moments(p.width, p.epsilon);
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    y[row_base + i] = normed(row_value(i), moments) * gain_bias[i] + gain_bias[p.width + i];
  }
}
