#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = round(x / scale) in signed bytes, scale = max |x| / 127 of every 32 neighbors of a
//           row; ties go to the even value
// shapes:   X (M, K) -> Y (M, words of a row), as byte_rows.h has it
// mapping:  an invocation owns a block of 32; x and y count rows, folded, z kLocalSize blocks
// bounds:   M and K may be anything; kAlignedA promises that X's offset and row stride are
//           multiples of 4
// requires: nothing (baseline)
// variants: quantize_rows__f32_none_i8
#extension GL_EXT_control_flow_attributes : require
#include "byte_rows.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_QUANTIZE_ROWS_CONSTANTS)

#include "float_bits.glsl"
#include "rows.glsl"
#include "weight_blocks.h"

layout(push_constant) uniform Params { QuantizeRowsParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 0) readonly buffer X4 { vec4 x4[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

// Steps k to k + 3 of the row that begins at `row`, zeros from K on.
vec4 load_steps(uint row, uint k) {
  if (k >= p.k) return vec4(0.0);
  if (kAlignedA != 0u) return x4[(row + k) >> 2];
  vec4 v;
  [[unroll]] for (uint e = 0u; e < 4u; ++e) v[e] = x[row + min(k + e, p.k - 1u)];
  return mix(vec4(0.0), v, lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(p.k)));
}

void main() {
  const uint row = row_group_index();
  const uint block = gl_WorkGroupID.z * kLocalSize + gl_LocalInvocationID.x;
  if (row >= p.rows || block >= p.blocks) return;
  const uint from = p.x_offset + row * p.x_row_stride;
  vec4 steps[kByteRowWords];
  uvec4 tops = uvec4(0u);
  [[unroll]] for (uint i = 0u; i < kByteRowWords; ++i) {
    steps[i] = load_steps(from, block * kBlockSteps + 4u * i);
    tops = max(tops, floatBitsToUint(steps[i]) & 0x7fffffffu);
  }
  // As integers: a NaN is above infinity there, and no comparison of floats loses it.
  const uint top = max(max(tops.x, tops.y), max(tops.z, tops.w));
  const float peak = uintBitsToFloat(top);
  const bool finite = top < 0x7f800000u;
  const bool zeros = !finite || peak < kSmallestPeak;
  const float factor = zeros ? 0.0 : kLargestByte / peak;
  uint to = row * p.y_row_stride + kByteRowWords * block;
  int sums[2] = {0, 0};
  [[unroll]] for (uint i = 0u; i < kByteRowWords; ++i) {
    const ivec4 values = zeros ? ivec4(0) : ivec4(roundEven(steps[i] * factor));
    sums[i / 4u] += values.x + values.y + values.z + values.w;
    const uvec4 bytes = uvec4(values & 255) << uvec4(0u, 8u, 16u, 24u);
    y[to + i] = bytes.x | bytes.y | bytes.z | bytes.w;
  }
  to = row * p.y_row_stride + kByteRowWords * p.blocks + kByteRowFacts * block;
  y[to] = finite ? floatBitsToUint(zeros ? 0.0 : peak / kLargestByte) : 0x7fc00000u;
  y[to + 1u] = uint(sums[0] & 0xffff) | uint(sums[1]) << 16;
}
