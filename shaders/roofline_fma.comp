#version 450
#extension GL_GOOGLE_include_directive : require
// computes: sum = sum * scale + shift, over and over, in registers only
// shapes:   Y (1), written by nobody: the store depends on a value that never comes out
// mapping:  an invocation owns three independent sums of four; workgroups differ in nothing
// bounds:   nothing is ragged
// requires: shaderFloat16 in the f16 variant; what the device multiplies and adds at best in f32,
//           f16 or 32-bit integers, no model uses it
// variants: roofline_fma__f32
//           roofline_fma__f16_fp16 FEATURES fp16
//           roofline_fma__u32 DEFINES VKF_INTEGER=1
#if VKF_FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define SCALAR float16_t
#define VECTOR f16vec4
#elif VKF_INTEGER
#define SCALAR uint
#define VECTOR uvec4
#else
#define SCALAR float
#define VECTOR vec4
#endif
#include "constants.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "roofline.h"

layout(push_constant) uniform Params { RooflineFmaParams p; };
layout(binding = 0) writeonly buffer Y { float y[]; };

// Written out: some compilers keep an array in memory, and every loop a loop.
#define STEP             \
  a = a * scale + shift; \
  b = b * scale + shift; \
  c = c * scale + shift;
#define EIGHT_STEPS STEP STEP STEP STEP STEP STEP STEP STEP
#if VKF_ROOFLINE_STEPS != 32
#error "the loop below has 32 steps"
#endif

void main() {
  const VECTOR first = VECTOR(gl_GlobalInvocationID.x & 15u) + VECTOR(0, 1, 2, 3);
  VECTOR a = first, b = first + SCALAR(4), c = first + SCALAR(8);
  // Fetched once: some compilers leave a load where it stands.
#if VKF_INTEGER
  const SCALAR scale = floatBitsToUint(p.scale) | 1u, shift = floatBitsToUint(p.shift);
#else
  const SCALAR scale = SCALAR(p.scale), shift = SCALAR(p.shift);
#endif
  for (uint n = 0u; n < p.iterations; ++n) { EIGHT_STEPS EIGHT_STEPS EIGHT_STEPS EIGHT_STEPS }
  const VECTOR total = a + b + c;
  // absent is negative; what comes out is not.
#if VKF_INTEGER
  const float value = float((total.x ^ total.y) + (total.z ^ total.w));
#else
  const float value = float(total.x + total.y + total.z + total.w);
#endif
  if (value == p.absent) y[0] = value;
}
