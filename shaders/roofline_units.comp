#version 450
#extension GL_GOOGLE_include_directive : require
// computes: sum = factor * factor + sum, over and over, by matrix units, in registers only; a factor
//           changes its sign each time, so that no product can be kept
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

void main() {
  coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA> left =
      coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA>(float16_t(p.scale));
  const coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB> right =
      coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB>(float16_t(p.shift));
  coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator> a, b, c, d;
  a = coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>(0.0);
  b = a + a;
  c = a + b;
  d = a + c;
  for (uint n = 0u; n < p.iterations; ++n) {
    left = -left;
    a = coopMatMulAdd(left, right, a);
    b = coopMatMulAdd(left, right, b);
    c = coopMatMulAdd(left, right, c);
    d = coopMatMulAdd(left, right, d);
  }
  // absent is a number that never comes out. Were the sums the same, one would do: each has its own
  // part in it.
  const float value = a[0] + 2.0 * b[0] + 3.0 * c[0] + 4.0 * d[0];
  if (value == p.absent) y[0] = value;
}
