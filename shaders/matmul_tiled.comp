#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C
// shapes:   A (batch, M, K), B (batch, K, N), C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kBlockM x kBlockN and walks K by kBlockK through shared memory; an
//           invocation kTileM x kTileN of it; x counts column tiles, y row tiles, z batches
// bounds:   M, N, K, every offset and every stride of A and B may be anything (transposes too);
//           with VKF_BLOCKS B is a packed weight of kFormat
// requires: kBlockM / kTileM * kBlockN / kTileN = the local size <= 128;
//           kBlockK * (kBlockM + kBlockN + 2) words of shared memory <= 16 KiB
layout(local_size_x = 128, local_size_x_id = 0) in;
layout(constant_id = 1) const uint kBlockM = 64;
layout(constant_id = 2) const uint kBlockN = 64;
layout(constant_id = 3) const uint kBlockK = 16;
layout(constant_id = 4) const uint kActivation = 255;  // 255: as the push constants say
layout(constant_id = 5) const uint kTileM = 8;
layout(constant_id = 6) const uint kTileN = 4;
// Which axis neighbouring invocations read along; a matter of speed only.
layout(constant_id = 7) const uint kAlongM = 0;  // 1 where a_row_stride is 1 (A transposed)
layout(constant_id = 8) const uint kAlongK = 0;  // 1 where b_row_stride is 1 (B transposed)
#if VKF_BLOCKS
layout(constant_id = 9) const uint kFormat = 3;
#endif

#include "f16_words.glsl"
#include "matmul.h"

layout(push_constant) uniform Params { MatmulParams p; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 1) readonly buffer BWords { uint b_words[]; };
layout(binding = 2) readonly buffer C { float c[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
#include "matmul_finish.glsl"

const uint kLanesM = kBlockM / kTileM;
const uint kLanesN = kBlockN / kTileN;
const uint kInvocations = kLanesM * kLanesN;
const uint kPitchM = kBlockM + 1u;  // odd, so that a column's words fall into different banks
const uint kPitchN = kBlockN + 1u;
shared float a_block[kBlockK * kPitchM];
shared float b_block[kBlockK * kPitchN];

#if VKF_BLOCKS
uint block_word(uint i) { return b_words[i]; }
#include "weight_block_at.glsl"
#endif

float load_b(uint base, uint k, uint column) {
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

// What lies outside the matrix is a zero that was never loaded: it may be a NaN in memory.
void load_a_block(uint row0, uint k0) {
  const uint base = p.a_offset + gl_WorkGroupID.z * p.a_batch_stride;
  for (uint t = gl_LocalInvocationID.x; t < kBlockM * kBlockK; t += kInvocations) {
    const uint r = kAlongM != 0u ? t % kBlockM : t / kBlockK;
    const uint s = kAlongM != 0u ? t / kBlockM : t % kBlockK;
    float v = 0.0;
    if (row0 + r < p.m && k0 + s < p.k) {
      v = a[base + (row0 + r) * p.a_row_stride + (k0 + s) * p.a_col_stride];
    }
    a_block[s * kPitchM + r] = v;
  }
}

void load_b_block(uint column0, uint k0) {
  const uint base = p.b_offset + gl_WorkGroupID.z * p.b_batch_stride;
  for (uint t = gl_LocalInvocationID.x; t < kBlockN * kBlockK; t += kInvocations) {
    const uint q = kAlongK != 0u ? t / kBlockK : t % kBlockN;
    const uint s = kAlongK != 0u ? t % kBlockK : t / kBlockN;
    float v = 0.0;
    if (column0 + q < p.n && k0 + s < p.k) {
      v = load_b(base, k0 + s, column0 + q);
    }
    b_block[s * kPitchN + q] = v;
  }
}

// Column j of an invocation in its block. Neighbours lie kLanesN apart, so that neighbouring
// invocations read neighbouring words; a gate and what it lets through stay together.
uint own_column(uint lane, uint j) {
  if (has_gate()) return 2u * ((j >> 1) * kLanesN + lane) + (j & 1u);
  return j * kLanesN + lane;
}

void main() {
  const uint lane_m = gl_LocalInvocationID.x / kLanesN;
  const uint lane_n = gl_LocalInvocationID.x % kLanesN;
  const uint row0 = gl_WorkGroupID.y * kBlockM;
  const uint column0 = gl_WorkGroupID.x * kBlockN;

  float sum[kTileM * kTileN];
  [[unroll]] for (uint i = 0u; i < kTileM * kTileN; ++i) sum[i] = 0.0;
  for (uint k0 = 0u; k0 < p.k; k0 += kBlockK) {
    load_a_block(row0, k0);
    load_b_block(column0, k0);
    barrier();
    for (uint s = 0u; s < kBlockK; ++s) {
      // Rows and columns of one invocation lie kLanes apart, so that neighbours read neighbours.
      float w[kTileN];
      [[unroll]] for (uint j = 0u; j < kTileN; ++j) {
        w[j] = b_block[s * kPitchN + own_column(lane_n, j)];
      }
      [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
        const float x = a_block[s * kPitchM + i * kLanesM + lane_m];
        [[unroll]] for (uint j = 0u; j < kTileN; ++j) {
          sum[i * kTileN + j] = fma(x, w[j], sum[i * kTileN + j]);
        }
      }
    }
    barrier();
  }
  [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
    if (has_gate()) {
      [[unroll]] for (uint j = 0u; j < kTileN; j += 2u) {
        finish_pair(row0 + i * kLanesM + lane_m, column0 + own_column(lane_n, j),
                    sum[i * kTileN + j], sum[i * kTileN + j + 1u]);
      }
      continue;
    }
    [[unroll]] for (uint j = 0u; j < kTileN; ++j) {
      finish(row0 + i * kLanesM + lane_m, column0 + j * kLanesN + lane_n, sum[i * kTileN + j]);
    }
  }
}
