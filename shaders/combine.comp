#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = alpha a + beta b, element by element, b limited to [-most, most] where kLimited
// shapes:   A (R, D), B (R, D) -> Y (R, D)
// mapping:  one workgroup a run of kChunk elements of a row; runs on z, rows on x and y
// bounds:   D may be anything; the last row may be ragged, elements from p.count on do not exist
// requires: nothing (baseline)
// variants: combine_run__f32_none_f32
#include "row_moves.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_COMBINE_CONSTANTS)

#include "float_bits.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { CombineParams p; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    const uint index = row * p.width + i;
    if (index >= p.count) break;
    float second = b[index];
    if (kLimited != 0u) second = between(second, -p.most, p.most);
    y[index] = p.alpha * a[index] + p.beta * second;
  }
}
