#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = x - max x - ln(sum exp(x - max x)); a row of -inf stays so, a NaN fills its row
// shapes:   X (R, V) -> Y (R, V)
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   V may be anything; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: log_softmax_row__f32_none_f32
//           log_softmax_row__f32_none_f32_subgroup FEATURES subgroup
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"
#include "rowwise.h"

layout(push_constant) uniform Params { RowParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  float highest = negative_infinity();
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float value = x[base + i];
    if (value > highest) highest = value;
  }
  highest = workgroup_max(highest);
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float value = x[base + i];
    if (!is_negative_infinity(value)) sum += exp_nonpositive(value - highest);
  }
  sum = workgroup_sum(sum);
  const float log_sum = log_of_sum(sum);
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float value = x[base + i];
    if (is_nan(log_sum)) {
      y[base + i] = log_sum;
    } else {
      y[base + i] = is_negative_infinity(value) ? value : value - highest - log_sum;
    }
  }
}
