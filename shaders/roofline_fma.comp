#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: sum = sum * scale + shift, over and over, in registers only
// shapes:   Y (1), written by nobody: the store depends on a value that never comes out
// mapping:  an invocation owns kChains independent vec4 sums; workgroups differ in nothing
// bounds:   nothing is ragged
// requires: nothing (baseline); what the device multiplies and adds at best, no model uses it
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 1) const uint kChains = 3;

#include "roofline.h"

layout(push_constant) uniform Params { RooflineFmaParams p; };
layout(binding = 0) writeonly buffer Y { float y[]; };

void main() {
  vec4 sum[kChains];
  [[unroll]] for (uint i = 0u; i < kChains; ++i) {
    sum[i] = vec4(gl_GlobalInvocationID.x & 15u) + vec4(0.0, 1.0, 2.0, 3.0) + float(4u * i);
  }
  // Fetched once: some compilers leave a load where it stands.
  const float scale = p.scale, shift = p.shift;
  for (uint n = 0u; n < p.iterations; ++n) {
    [[unroll]] for (uint s = 0u; s < VKF_ROOFLINE_STEPS; ++s) {
      [[unroll]] for (uint i = 0u; i < kChains; ++i) sum[i] = sum[i] * scale + shift;
    }
  }
  vec4 total = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < kChains; ++i) total += sum[i];
  const float value = total.x + total.y + total.z + total.w;
  if (value == p.absent) y[0] = value;
}
