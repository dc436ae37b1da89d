#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: to = from
// shapes:   From (N) -> To (N), N elements of 16 bytes, or of 32 in the _int64 variant
// mapping:  a workgroup owns 64 kLocalSize consecutive bytes, an invocation every kLocalSize-th
//           element of them
// bounds:   nothing is ragged: the workgroups cover N exactly
// requires: shaderInt64 in the _int64 variant; what the device reads and writes at best, no model
//           uses it
// variants: roofline_copy__f32
//           roofline_copy__f32_int64 FEATURES int64
#if VKF_INT64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define ELEMENT u64vec4
const uint kElements = 2u;
#else
#define ELEMENT vec4
const uint kElements = 4u;
#endif
#include "constants.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

layout(binding = 0) readonly buffer From { ELEMENT from[]; };
layout(binding = 1) writeonly buffer To { ELEMENT to[]; };

void main() {
  // No loop is left: some compilers fetch lane by lane inside of one.
  const uint first = gl_WorkGroupID.x * kLocalSize * kElements + gl_LocalInvocationID.x;
  [[unroll]] for (uint j = 0u; j < kElements; ++j) {
    to[first + j * kLocalSize] = from[first + j * kLocalSize];
  }
}
