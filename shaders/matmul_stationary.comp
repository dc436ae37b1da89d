#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C
// shapes:   A (batch, M, K), B (batch, K, N) in panels, C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kRows rows x 32 columns, an invocation 8 of these, whose weights of
//           kSteps steps of K it holds while the rows pass by; x counts blocks of rows, y groups of
//           columns, z batches. The same steps of one row of A are a buffer of their own in set 1,
//           so that each has a literal offset from one address
// bounds:   M and N may be anything; K, offset and strides of A are whole parts (kSteps); B is
//           stored in kFormat, its strides as packed; a gate only where the sums are not made Y
//           here
// requires: the bytes of binding 0's A, part by part, in set 1; nobody else's bytes in Y
// variants: matmul_stationary__f32_any_f32_tables UNROLLED FEATURES tables software
//           matmul_stationary__f32_any_f32_tables_short UNROLLED FEATURES tables software DEFINES VKF_SHORT=1
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_nonuniform_qualifier : require
#include "matmul.h"
layout(local_size_x = 4) in;
VKF_CONSTANTS(VKF_MATMUL_STATIONARY_CONSTANTS)

layout(push_constant) uniform Params { MatmulParams p; };
// For what is included.
#define VKF_LITERAL 1
#define VKF_BLOCKS 1
const uint kAlignedA = 1u;
#include "matmul_operands.glsl"
#include "matmul_finish.glsl"
layout(set = 1, binding = 0) readonly buffer Part { float a[]; }
parts[];
layout(binding = 3) buffer Sums { float sums[]; };  // Y, between the blocks of K

const uint kColumns = 8u;  // of an invocation
#if VKF_SHORT
const uint kSteps = kHeldSteps / 2u;
#else
const uint kSteps = kHeldSteps;
#endif
float held[kSteps][kColumns];

void hold(uint k, vec4 low, vec4 high) {
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    held[k][e] = low[e];
    held[k][4u + e] = high[e];
  }
}

// A group of a step in f32 or f16.
void hold_group(uint k, uint at) {
  if (kFormat == 1u) {
    const uvec4 words = load_words(at);
    hold(k, unpack_f16x4(words.xy), unpack_f16x4(words.zw));
  } else {
    hold(k, uintBitsToFloat(load_words(2u * at)), uintBitsToFloat(load_words(2u * at + 1u)));
  }
}

// The weights of steps k0 to k0 + kSteps - 1 of the invocation's columns.
void hold_weights(uint group, uint k0) {
  uint k = 0u;
  if (kFormat <= 1u) {
    const uint start = group_start(group) + k0 * group_step();
    do {
      hold_group(k, start + k * group_step());
      ++k;
    } while (k < kSteps);
    return;
  }
  const GroupPlace place = place_of(group);
  do {
    const uint block = (k0 + k) / kBlockSteps;
    const BlockScales scales = load_scales(place, block);
    const uint end = k + kBlockSteps;
    do {
      const WeightRun run = load_run(place, block, k % kBlockSteps / kRunSteps);
      const BlockScales own = run_scales(scales, k % kBlockSteps / kRunSteps);
      [[unroll]] for (uint s = 0u; s < kRunSteps; ++s) {
        vec4 low, high;
        weights_of(run, own, s, low, high);
        hold(k + s, low, high);
      }
      k += kRunSteps;
    } while (k < end);
  } while (k < kSteps);
}

void main() {
  const uint group = gl_WorkGroupID.y * 4u + gl_LocalInvocationID.x;
  const uint column = kColumns * group;
  if (column >= p.n) return;
  const uint first = gl_WorkGroupID.x * kRows;
  const uint end = min(first + kRows, p.m);
  const uint y_first = p.y_offset + gl_WorkGroupID.z * p.y_batch_stride;
  const uint row_parts = p.a_row_stride / kSteps;
  uint first_part = (p.a_offset + gl_WorkGroupID.z * p.a_batch_stride) / kSteps;
  // Columns beyond the matrix go where the last one does, and before it, so that it stays.
  uint place[kColumns];
  [[unroll]] for (uint e = 0u; e < kColumns; ++e) place[e] = min(column + e, p.n - 1u);
  uint keep = 0u;  // bits of what is in Y, which the first steps do not want
  uint k = 0u;
  // Loops that go round once at least, for the reasons that matmul_slabs gives.
  do {
    hold_weights(group, k);
    uint row = first;
    do {
      const uint at = y_first + row * p.y_row_stride;
      const uint part = first_part + row * row_parts;
      float sum[kColumns];
      [[unroll]] for (uint e = 0u; e < kColumns; ++e) {
        sum[e] = uintBitsToFloat(floatBitsToUint(sums[at + place[e]]) & keep);
      }
      [[unroll]] for (uint s = 0u; s < kSteps; ++s) {
        const float x = parts[part].a[s];
        // Two weights at a time: of a load that is followed by its only use, this compiler makes an
        // operand, for which it copies x.
        [[unroll]] for (uint e = 0u; e < kColumns; e += 2u) {
          const float w0 = held[s][e], w1 = held[s][e + 1u];
          sum[e] = fma(w0, x, sum[e]);
          sum[e + 1u] = fma(w1, x, sum[e + 1u]);
        }
      }
      [[unroll]] for (uint e = 0u; e < kColumns; ++e) {
        sums[at + place[kColumns - 1u - e]] = sum[kColumns - 1u - e];
      }
      ++row;
    } while (row < end);
    k += kSteps;
    ++first_part;
    keep = 0xffffffffu;
  } while (k < p.k);
  if ((kTerms & kTermFinish) == 0u) return;
  uint row = first;
  do {
    const uint at = y_first + row * p.y_row_stride;
    uint e = 0u;
    do {
      finish(row, column + e, sums[at + min(column + e, p.n - 1u)]);
      ++e;
    } while (e < kColumns);
    ++row;
  } while (row < end);
}
