#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C
// shapes:   A (batch, M, K), B (batch, K, N) in panels, C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns 4 rows x one panel, an invocation one row of it; x counts fours of
//           rows (neighbors share B), y panels, z batches. A slab, 8 steps of K of a panel, is a
//           separate buffer in set 1, so that every weight has a literal offset from one address
// bounds:   M and N may be anything; K, b_offset and the strides of B are whole slabs; offset and
//           strides of A are multiples of 4
// requires: the bytes of binding 1's B, slab by slab, in set 1
// variants: matmul_slabs__f32_f32_f32_tables UNROLLED FEATURES tables software
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_nonuniform_qualifier : require
#include "matmul.h"
layout(local_size_x = 4) in;
VKF_CONSTANTS(VKF_MATMUL_SLABS_CONSTANTS)

layout(push_constant) uniform Params { MatmulParams p; };
layout(binding = 0) readonly buffer A4 { vec4 a4[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) readonly buffer C { float c[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(set = 1, binding = 0) readonly buffer Slab { float w[]; }
slabs[];
#include "matmul_finish.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * 4u + gl_LocalInvocationID.x;
  // Sums have to stay in memory, as registers are for A: hence the loop that is not unrolled, at
  // the end. That one takes registers for itself and for what it needs from before, if the loop
  // over K lies no deeper than it. Hence the loop around that.
  float sum[kPanelColumns];
  [[unroll]] for (uint i = 0u; i < kPanelColumns; ++i) sum[i] = 0.0;
  // Rows beyond the matrix repeat the last one; nothing of theirs is stored.
  uint at =
      (p.a_offset + gl_WorkGroupID.z * p.a_batch_stride + min(row, p.m - 1u) * p.a_row_stride) >> 2;
  uint slab =
      (p.b_offset + gl_WorkGroupID.z * p.b_batch_stride + gl_WorkGroupID.y * p.b_panel_stride) /
      (kSlabSteps * kPanelColumns);
  const uint end = slab + p.k / kSlabSteps;
  // One round at least. A test at the beginning would not do. This compiler goes through the body
  // once more for lanes that have left. What lies at a literal place is read for those, too.
  do {
    const uint stop = min(slab + 64u, end);
    do {
      vec4 x[kSlabSteps / 4u];
      [[unroll]] for (uint i = 0u; i < kSlabSteps / 4u; ++i) x[i] = a4[at + i];
      [[unroll]] for (uint i = 0u; i < kPanelColumns; ++i) {
        float v = sum[i];
        [[unroll]] for (uint s = 0u; s < kSlabSteps; ++s) {
          v = fma(slabs[slab].w[s * kPanelColumns + i], x[s / 4u][s % 4u], v);
        }
        sum[i] = v;
      }
      ++slab;
      at += kSlabSteps / 4u;
    } while (slab < stop);
  } while (slab < end);
  if (row >= p.m) return;
  const uint column = gl_WorkGroupID.y * kPanelColumns;
  const uint columns = min(p.n - column, kPanelColumns);
  uint i = 0u;
  do {
    if (has_gate()) {
      finish_pair(row, column + i, sum[i], sum[i + 1u]);
      ++i;
    } else {
      finish(row, column + i, sum[i]);
    }
    ++i;
  } while (i < columns);
}
