#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C; with kParts > 1
//           sums of parts of K alone, for matmul_parts
// shapes:   A (batch, M, K), B (batch, K, N), C (batch, M, N) or (N) -> Y (batch, M, N), or
//           (batch, kParts, M, N) with rows that begin at multiples of 4
// mapping:  a workgroup owns kBlock x kBlock and walks its part of K by kDepth through shared memory:
//           while one half is multiplied, the next loads are under way to the other; an invocation
//           kTileM x kTileN of it; x counts column blocks, y row blocks, z batches and in them parts
// bounds:   M, N, K, every offset and every stride of A and B may be anything (transposes too);
//           kWideA and kWideB promise fours of neighbouring elements at multiples of 4, kWholeSteps
//           a K in multiples of kDepth; with VKF_BLOCKS B is a packed weight of kFormat
// requires: kBlock / kTileM * kBlock / kTileN = 2 kBlock = the local size; 64 kBlock bytes twice of
//           shared memory <= 16 KiB
// variants: matmul_tiled__f32_f32_f32
//           matmul_tiled__f32_f16_f32 DEFINES VKF_WEIGHT_F16=1
//           matmul_tiled__f32_blocks_f32 DEFINES VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MATMUL_TILED_CONSTANTS)
const uint kWideA = 1u, kWideB = 2u, kWholeSteps = 4u;

#include "f16_words.glsl"

layout(push_constant) uniform Params { MatmulParams p; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 0) readonly buffer A4 { vec4 a4[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 1) readonly buffer B4 { vec4 b4[]; };
layout(binding = 1) readonly buffer BWords { uint b_words[]; };
layout(binding = 1) readonly buffer BPairs { uvec2 b_pairs[]; };
layout(binding = 2) readonly buffer C { float c[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };
#include "matmul_finish_quad.glsl"

const uint kDepth = 8u;  // so every invocation loads four elements of A and of B at a time
const uint kInvocations = 2u * kBlock;
const uint kLanesM = kBlock / kTileM;
const uint kLanesN = kBlock / kTileN;
const uint kQuads = kTileN / 4u;
// Two halves. A by rows, fours along K; B by steps of K, fours of columns.
shared vec4 a_block[2u * kInvocations];
shared vec4 b_block[2u * kInvocations];

#if VKF_BLOCKS
uint block_word(uint i) { return b_words[i]; }
#include "weight_block_at.glsl"
#endif

float load_b_at(uint base, uint k, uint column) {
  const uint panel = base + column / kPanelColumns * p.b_panel_stride;
#if VKF_BLOCKS
  return block_weight(panel, k, column % kPanelColumns);
#else
  const uint i = panel + k * p.b_row_stride + column % kPanelColumns * p.b_col_stride;
#if VKF_WEIGHT_F16
  return unpack_f16_at(b_words[i >> 1], i);
#else
  return b[i];
#endif
#endif
}

// Elements k..k+3 of the row of A that begins at `row`. From `end` on they are zeros that were never
// loaded: memory there may hold a NaN.
vec4 load_a(uint row, uint k, uint end) {
  if ((kWide & kWideA) != 0u && ((kWide & kWholeSteps) != 0u || k + 4u <= end)) {
    return a4[(row >> 2) + (k >> 2)];
  }
  vec4 v = vec4(0.0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (k + e < end) v[e] = a[row + (k + e) * p.a_col_stride];
  }
  return v;
}

// Where a column's panel has it in step 0, with kWideB in fours.
uint b_start(uint base, uint column) {
  const uint first = min(column, (p.n - 1u) & ~3u);
  return (base + first / kPanelColumns * p.b_panel_stride + first % kPanelColumns) >> 2;
}

// Columns column..column+3 of step k of B, likewise; `start` is their b_start.
vec4 load_b(uint base, uint start, uint column, uint k, uint end) {
  vec4 v = vec4(0.0);
  if ((kWide & kWholeSteps) == 0u && k >= end) return v;
#if !VKF_BLOCKS
  if ((kWide & kWideB) != 0u) {
    const uint at = start + k * (p.b_row_stride >> 2);
#if VKF_WEIGHT_F16
    return unpack_f16x4(b_pairs[at]);
#else
    return b4[at];
#endif
  }
#endif
  [[unroll]] for (uint e = 0u; e < 4u; ++e) v[e] = load_b_at(base, k, min(column + e, p.n - 1u));
  return v;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint lane_m = lane / kLanesN;
  const uint lane_n = lane % kLanesN;
  const uint row0 = gl_WorkGroupID.y * kBlock;
  const uint column0 = gl_WorkGroupID.x * kBlock;
  const uint batch = gl_WorkGroupID.z / kParts;
  const uint part_steps = ((p.k + kDepth - 1u) / kDepth + kParts - 1u) / kParts * kDepth;
  const uint begin = min(gl_WorkGroupID.z % kParts * part_steps, p.k);
  const uint end = min(begin + part_steps, p.k);
  // What this invocation loads: a row of A and where in kDepth, a step of K and columns of B. Both
  // lie at `lane` in their blocks but where neighbours go along the other axis.
  const uint a_row = kAlongM != 0u ? lane % kBlock : lane / 2u;
  const uint a_k = 4u * (kAlongM != 0u ? lane / kBlock : lane % 2u);
  const uint b_column = 4u * (kAlongK != 0u ? lane / kDepth : lane % (kBlock / 4u));
  const uint b_k = kAlongK != 0u ? lane % kDepth : lane / (kBlock / 4u);
  const uint a_place = 2u * a_row + a_k / 4u;
  const uint b_place = b_k * (kBlock / 4u) + b_column / 4u;
  // Rows beyond the matrix repeat the last one; nothing of theirs is stored.
  const uint a_start = p.a_offset + batch * p.a_batch_stride +
                       min(row0 + a_row, p.m - 1u) * p.a_row_stride;
  const uint b_base = p.b_offset + batch * p.b_batch_stride;
  const uint b_at = b_start(b_base, column0 + b_column);

  vec4 sum[kTileM * kQuads];
  [[unroll]] for (uint i = 0u; i < kTileM * kQuads; ++i) sum[i] = vec4(0.0);
  vec4 next_a = load_a(a_start, begin + a_k, end);
  vec4 next_b = load_b(b_base, b_at, column0 + b_column, begin + b_k, end);
  uint half_block = 0u;
  for (uint k0 = begin; k0 < end; k0 += kDepth) {
    a_block[half_block + a_place] = next_a;
    b_block[half_block + b_place] = next_b;
    barrier();  // one a round: who writes this half again has seen the barrier of the other
    if (k0 + kDepth < end) {
      next_a = load_a(a_start, k0 + kDepth + a_k, end);
      next_b = load_b(b_base, b_at, column0 + b_column, k0 + kDepth + b_k, end);
    }
    // Rows and quads of one invocation lie kLanes apart, so that neighbours read neighbours.
    [[unroll]] for (uint run = 0u; run < kDepth / 4u; ++run) {
      vec4 w[4u * kQuads];
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {
        [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
          w[s * kQuads + q] =
              b_block[half_block + (4u * run + s) * (kBlock / 4u) + q * kLanesN + lane_n];
        }
      }
      [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
        const vec4 x = a_block[half_block + 2u * (i * kLanesM + lane_m) + run];
        [[unroll]] for (uint s = 0u; s < 4u; ++s) {
          [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
            sum[i * kQuads + q] = fma(vec4(x[s]), w[s * kQuads + q], sum[i * kQuads + q]);
          }
        }
      }
    }
    half_block ^= kInvocations;
  }
  [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
    const uint column = column0 + 4u * (q * kLanesN + lane_n);
    if (column >= p.n) continue;
    const vec4 bias = kParts > 1u ? vec4(0.0) : load_bias(column);
    [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
      const uint row = row0 + i * kLanesM + lane_m;
      if (row >= p.m) continue;
      if (kParts > 1u) {
        y4[(p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column) >> 2] =
            sum[i * kQuads + q];
        continue;
      }
      store_quad(row, column, finish(sum[i * kQuads + q], bias, load_addend(row, column)));
    }
  }
}
