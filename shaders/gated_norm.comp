#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = x act(z); with VKF_GATE_THEN_NORM h / sqrt(mean(h^2) + epsilon) * gain of h = x
//           act(z); with VKF_NORM_THEN_GATE x / sqrt(mean(x^2) + epsilon) * gain * act(z); means
//           over each group of a row
// shapes:   X (R, G E), Z (R, gate_width), Gain (G, E) -> Y (R, G E)
// mapping:  one workgroup a group (z) of a row (x, y); an invocation takes every kLocalSize-th
//           element
// bounds:   G and E may be anything; rows beyond the last are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: gated_norm_row__f32_f32_f32
//           gated_norm_row__f32_f32_f32_subgroup FEATURES subgroup
#include "gated_norm.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_GATED_NORM_CONSTANTS)

#include "activation.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { GatedNormParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Z { float z[]; };
layout(binding = 2) readonly buffer Gain { float gain[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint first = gl_WorkGroupID.z * p.group;
  const uint at = row * p.width + first;
  const uint gates = row * p.gate_width + p.gate_first + first;
  float scale = 1.0;
  if (kOrder != VKF_GATE_ONLY) {
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < p.group; i += kLocalSize) {
      float h = x[at + i];
      if (kOrder == VKF_GATE_THEN_NORM) h *= apply_activation(z[gates + i], kActivation);
      squares += h * h;
    }
    scale = inversesqrt(workgroup_sum(squares) / float(p.group) + p.epsilon);
  }
  for (uint i = gl_LocalInvocationID.x; i < p.group; i += kLocalSize) {
    float h = x[at + i] * apply_activation(z[gates + i], kActivation);
    if (kOrder != VKF_GATE_ONLY) h *= scale * gain[first + i];
    y[at + i] = h;
  }
}
