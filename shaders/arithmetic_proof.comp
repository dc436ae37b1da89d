#version 450
#extension GL_GOOGLE_include_directive : require
// computes: every operation on floats that kernels use, of three operands, as words
// shapes:   X (N, 3) -> Y (N, VKF_PROVEN_WORDS)
// mapping:  an invocation owns an item
// bounds:   N may be anything
// requires: nothing (baseline)
// variants: arithmetic_proof_run__f32
#include "arithmetic_proof.h"
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

layout(push_constant) uniform Params { ArithmeticProofParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

uint comparisons(float a, float b) {
  return uint(a < b) | uint(a <= b) << 1 | uint(a > b) << 2 | uint(a >= b) << 3 |
         uint(a == b) << 4 | uint(a != b) << 5;
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= p.count) return;
  const float a = x[3u * i], b = x[3u * i + 1u], c = x[3u * i + 2u];
  const uint at = VKF_PROVEN_WORDS * i;
  y[at] = floatBitsToUint(a + b);
  y[at + 1u] = floatBitsToUint(a - b);
  y[at + 2u] = floatBitsToUint(a * b);
  y[at + 3u] = floatBitsToUint(a * b + c);
  y[at + 4u] = floatBitsToUint(c - a * b);
  y[at + 5u] = comparisons(a, b);
  y[at + 6u] = floatBitsToUint(floor(a));
  y[at + 7u] = floatBitsToUint(float(floatBitsToUint(a)));
  y[at + 8u] = floatBitsToUint(float(floatBitsToInt(a)));
  y[at + 9u] = uint(int(abs(a) < 1.0e9 ? a : 1.0));
  y[at + 10u] = floatBitsToUint(a / b);
  y[at + 11u] = floatBitsToUint(sqrt(a));
  y[at + 12u] = floatBitsToUint(exp(a));
  y[at + 13u] = floatBitsToUint(log(a));
  y[at + 14u] = floatBitsToUint(unpackHalf2x16(floatBitsToUint(a)).x);
  y[at + 15u] = packHalf2x16(vec2(a, b));
}
