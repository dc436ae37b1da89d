#version 450
#extension GL_GOOGLE_include_directive : require
// computes: sum = factor * factor + sum, over and over, by matrix units, in registers only
// shapes:   Y (1), written by nobody: the store depends on a value that never comes out
// mapping:  a subgroup owns four independent sums of kUnitM x kUnitN; workgroups differ in nothing
// bounds:   nothing is ragged
// requires: cooperative matrices of kUnitM x kUnitN x kUnitK, f16 to f32, and whole subgroups; what
//           the device's units do at best, no model uses it
// variants: roofline_units__f16_matrix FEATURES matrix
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "roofline.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ROOFLINE_UNITS_CONSTANTS)

layout(push_constant) uniform Params { RooflineFmaParams p; };
layout(binding = 0) writeonly buffer Y { float y[]; };

// Two factors of each side, a row of A or a column of B after the other along K.
const uint kPitch = kUnitK / 4u;
const uint kWords = 2u * (kUnitM + kUnitN) * kPitch;
shared f16vec4 factors[kWords];

#define UNIT_SUMS coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>

// Two factors of each side make four products, as in a tile of a product of matrices. No element is
// known or the same as its neighbor. A factor changes its sign each time, by a number that no
// compiler knows, and sums begin apart. So no product can be reused or canceled, and no sum is
// another one. They stay finite: two steps add nothing.
void main() {
  for (uint n = gl_LocalInvocationID.x; n < kWords; n += kLocalSize) {
    const vec4 part = vec4((uvec4(4u * n) + uvec4(0u, 1u, 2u, 3u)) % 13u);
    factors[n] = f16vec4(p.scale - p.shift * part);
  }
  barrier();
  coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA> upper, lower;
  coopMatLoad(upper, factors, 0u, kPitch, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(lower, factors, kUnitM * kPitch, kPitch, gl_CooperativeMatrixLayoutRowMajor);
  coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB> left, right;
  const uint of_b = 2u * kUnitM * kPitch;
  coopMatLoad(left, factors, of_b, kPitch, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(right, factors, of_b + kUnitN * kPitch, kPitch,
              gl_CooperativeMatrixLayoutColumnMajor);
  UNIT_SUMS a = UNIT_SUMS(0.0), b = UNIT_SUMS(p.scale), c = UNIT_SUMS(p.shift);
  UNIT_SUMS d = UNIT_SUMS(p.scale + p.shift);
  const float16_t turn = float16_t(p.absent);
  for (uint n = 0u; n < p.iterations; ++n) {
    upper = upper * turn;
    lower = lower * turn;
    a = coopMatMulAdd(upper, left, a);
    b = coopMatMulAdd(upper, right, b);
    c = coopMatMulAdd(lower, left, c);
    d = coopMatMulAdd(lower, right, d);
  }
  // absent is a number that hardly comes out. Each sum has its own part in what is compared.
  const float value = a[0] + 2.0 * b[0] + 3.0 * c[0] + 4.0 * d[0];
  if (value == p.absent) y[0] = value;
}
