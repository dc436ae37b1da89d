#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = -sum x ln x over a row of probabilities, in nats, with 0 ln 0 = 0
// shapes:   X (R, S) -> Y (R)
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th element
// bounds:   S may be anything; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: row_entropy_row__f32_none_f32
//           row_entropy_row__f32_none_f32_subgroup FEATURES subgroup
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
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += kLocalSize) {
    const float value = x[row * p.width + i];
    if (is_nan(value)) {
      sum += value;
    } else if (value < 0.0) {
      sum += make_nan();
    } else if (value > 0.0) {
      sum -= value * log(value);
    }
  }
  sum = workgroup_sum(sum);
  if (gl_LocalInvocationID.x == 0u) y[row] = sum;
}
