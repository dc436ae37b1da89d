#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha S + beta C + bias), or act(alpha S + bias) + beta C, S = sum_k P_k: what
//           matmul_tiled left of a product whose K it took in parts, added in their order
// shapes:   P (batch, K, M, N) with rows that begin at multiples of 4, C (batch, M, N) or (N)
//           -> Y (batch, M, N)
// mapping:  an invocation owns four columns of a row; x counts kLocalSize of them, y rows, z
//           batches
// bounds:   M, N and K may be anything; a_col_stride goes from a part to the next
// requires: nothing (baseline)
// variants: matmul_parts__f32_any_f32
#extension GL_EXT_control_flow_attributes : require
#include "matmul.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MATMUL_PARTS_CONSTANTS)

layout(push_constant) uniform Params { MatmulParams p; };
layout(binding = 0) readonly buffer P4 { vec4 parts[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) readonly buffer C { float c[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };
#include "matmul_finish_quad.glsl"

void main() {
  const uint column = 4u * (gl_WorkGroupID.x * kLocalSize + gl_LocalInvocationID.x);
  const uint row = gl_WorkGroupID.y;
  if (column >= p.n) return;
  const uint first = gl_WorkGroupID.z * p.a_batch_stride + row * p.a_row_stride + column;
  vec4 sum = vec4(0.0);
  for (uint k = 0u; k < p.k; ++k) sum += parts[(p.a_offset + first + k * p.a_col_stride) >> 2];
  store_quad(row, column, finish(sum, load_bias(column), load_addend(row, column)));
}
