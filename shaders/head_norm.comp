#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = x / sqrt(mean(x^2) + epsilon) * gain over each head of a row, or with kCentered
//           (x - mean) / sqrt(variance + epsilon) * gain; other columns are copied
// shapes:   X (R, W), Gain (G, E) -> Y (R, W); head g is columns first + g E ... first + (g + 1) E
// mapping:  one workgroup a head of a row, and one the other columns of a row; heads on z, rows on
//           x and y; an invocation takes every kLocalSize-th element
// bounds:   W and E may be anything with first + G E <= W; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: head_norm_row__f32_f32_f32
//           head_norm_row__f32_f32_f32_subgroup FEATURES subgroup
#include "head_norm.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_HEAD_NORM_CONSTANTS)

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { HeadNormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Gain { float gain[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

uint row_base = 0u;
float row_value(uint column) { return x[row_base + column]; }
#include "layer_norm_row.glsl"

void copy_columns(uint from, uint to) {
  for (uint i = from + gl_LocalInvocationID.x; i < to; i += kLocalSize) {
    y[row_base + i] = x[row_base + i];
  }
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint head = gl_WorkGroupID.z;
  row_base = row * p.width;
  if (head == p.heads) {
    copy_columns(0u, p.first);
    copy_columns(p.first + p.heads * p.head_width, p.width);
    return;
  }
  row_base += p.first + head * p.head_width;
  const uint gains = head * p.head_width;
  if (kCentered != 0u) {
    const RowMoments moments = row_moments(p.head_width, p.epsilon);
    for (uint i = gl_LocalInvocationID.x; i < p.head_width; i += kLocalSize) {
      y[row_base + i] = normed(row_value(i), moments) * gain[gains + i];
    }
    return;
  }
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.head_width; i += kLocalSize) {
    squares += row_value(i) * row_value(i);
  }
  const float scale = inversesqrt(workgroup_sum(squares) / float(p.head_width) + p.epsilon);
  for (uint i = gl_LocalInvocationID.x; i < p.head_width; i += kLocalSize) {
    y[row_base + i] = row_value(i) * scale * gain[gains + i];
  }
}
