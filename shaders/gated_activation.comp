#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = activation(gate) * activation(up), of halves or pairs of x's row (Shazeer, 2020,
//           "GLU variants")
// shapes:   X (R, 2F) -> Y (R, F)
// mapping:  one workgroup a run of kChunk elements of a row; runs on z, rows on x and y
// bounds:   F may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: gated_activation_run__f32_none_f32
#include "rowwise.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_GATED_ACTIVATION_CONSTANTS)

#include "activation.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { ElementParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint base = row * 2u * p.width;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    const uint gate = base + (kPairs != 0u ? 2u * i : i);
    const uint up = gate + (kPairs != 0u ? 1u : p.width);
    y[row * p.width + i] = apply_activation(x[gate], kKind) * apply_activation(x[up], kUp);
  }
}
