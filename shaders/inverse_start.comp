#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = a^T / the largest column sum, of each matrix or of all (Razavi et al. 2014; Xiong
//           et al. 2021)
// shapes:   A (N, M, M), Sums (N, M): A's column sums -> Y (N, M, M)
// mapping:  one workgroup a matrix; an invocation every kLocalSize-th element
// bounds:   N and M may be anything; matrices beyond the last are skipped
// requires: nothing (baseline)
// variants: inverse_start_matrix__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "float_bits.glsl"
#include "nystrom.h"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { InverseStartParams p; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer Sums { float sums[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint matrix = row_group_index();
  if (matrix >= p.matrices) return;
  const uint first = p.shared_max != 0u ? 0u : matrix * p.side;
  const uint count = p.shared_max != 0u ? p.matrices * p.side : p.side;
  float highest = negative_infinity();
  float broken = 0.0;  // a NaN among the sums
  for (uint i = gl_LocalInvocationID.x; i < count; i += kLocalSize) {
    const float value = sums[first + i];
    if (is_nan(value)) {
      broken = value;
    } else if (value > highest) {
      highest = value;
    }
  }
  highest = workgroup_max(highest);
  broken = workgroup_sum(broken);
  const float divisor = is_nan(broken) ? broken : highest;
  const uint size = p.side * p.side;
  const uint base = matrix * size;
  for (uint i = gl_LocalInvocationID.x; i < size; i += kLocalSize) {
    y[base + i] = a[base + i % p.side * p.side + i / p.side] / divisor;
  }
}
