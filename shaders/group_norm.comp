#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = (x - mean) / sqrt(variance + epsilon) * gain + bias, mean and variance over a group
//           of channels and all tokens (Wu and He, 2018)
// shapes:   X (B, C, T) or (B, T, C), GainBias (2, C) -> Y, the shape of X
// mapping:  one workgroup a group of a batch entry; an invocation takes every kLocalSize-th element
// bounds:   every size may be anything; groups beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: group_norm_row__f32_f32_f32
//           group_norm_row__f32_f32_f32_subgroup FEATURES subgroup
#include "group_norm.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_GROUP_NORM_CONSTANTS)

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { GroupNormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer GainBias { float gain_bias[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

// An element of the group by its digits: counting on is cheaper than dividing for each.
struct Element {
  uint run;
  uint at;
};

Element first_element() {
  return Element(gl_LocalInvocationID.x / p.inner, gl_LocalInvocationID.x % p.inner);
}

void advance(inout Element e) {
  e.run += p.step_outer;
  e.at += p.step_inner;
  if (e.at >= p.inner) {
    e.at -= p.inner;
    ++e.run;
  }
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint group = row % p.groups;
  const uint base = row / p.groups * p.batch_stride + group * p.group_stride;
  const float count = float(p.inner) * float(p.outer);
  float sum = 0.0;
  for (Element e = first_element(); e.run < p.outer; advance(e)) {
    sum += x[base + e.run * p.outer_stride + e.at];
  }
  const float rough_mean = workgroup_sum(sum) / count;
  // The corrected two-pass algorithm (Chan, Golub and LeVeque, 1983), as in layer_norm.
  float differences = 0.0;
  float squares = 0.0;
  for (Element e = first_element(); e.run < p.outer; advance(e)) {
    const float difference = x[base + e.run * p.outer_stride + e.at] - rough_mean;
    differences += difference;
    squares += difference * difference;
  }
  const float rest = workgroup_sum(differences) / count;
  const float variance = at_least(workgroup_sum(squares) / count - rest * rest, 0.0);
  const float scale = inversesqrt(variance + p.epsilon);
  for (Element e = first_element(); e.run < p.outer; advance(e)) {
    const uint at = base + e.run * p.outer_stride + e.at;
    const uint channel = group * p.group_channels + (kChannelsLast != 0u ? e.at : e.run);
    const float centered = (x[at] - rough_mean) - rest;
    y[at] = centered * scale * gain_bias[channel] + gain_bias[p.channels + channel];
  }
}
