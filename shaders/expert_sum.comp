#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = scale * sum over a row's experts of weight * z + residual, in the order of the
//           routes
// shapes:   Z (R, count, D), Routes (rows, entries, 2), Residual (R, D) -> Y (R, D)
// mapping:  one workgroup a run of kChunk elements of a row; runs on z, rows on x and y
// bounds:   D may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: expert_sum_run__f32_none_f32
#include "experts.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_EXPERT_SUM_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { ExpertSumParams p; };
layout(binding = 0) readonly buffer Z { float z[]; };
layout(binding = 1) readonly buffer Routes { uint routes[]; };
layout(binding = 2) readonly buffer Residual { float residual[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  const uint route = (p.route_row + row) * p.entries + p.first;
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    float sum = 0.0;
    for (uint k = 0u; k < p.count; ++k) {
      sum = fma(uintBitsToFloat(routes[2u * (route + k) + 1u]),
                z[(row * p.count + k) * p.width + i], sum);
    }
    sum *= p.scale;
    if (kHasResidual != 0u) sum += residual[row * p.width + i];
    y[row * p.width + i] = sum;
  }
}
