#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C, by matrix units:
//           factors rounded to f16, exact products, f32 sums (VK_KHR_cooperative_matrix)
// shapes:   A (batch, M, K), B (batch, K, N), C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kBlockM x kBlockN and walks K by kBlockK through shared memory; a
//           subgroup an even share of it in tiles of kUnitM x kUnitN; x counts column blocks, y row
//           blocks, z batches
// bounds:   M, N and K may be anything; rows of A anywhere, with elements next to each other; B is
//           a packed weight of kFormat in whole panels
// requires: cooperative matrices of kUnitM x kUnitN x kUnitK, f16 to f32; kSubgroupsM * kUnitM
//           divides kBlockM, kSubgroupsN * kUnitN kBlockN, kUnitK kBlockK; kUnitN is even; the local
//           size is kSubgroupsM * kSubgroupsN subgroups; shared memory as in matmul_strategy.cpp
// variants: matmul_units__f32_any_f32_matrix FEATURES matrix
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "matmul.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MATMUL_UNITS_CONSTANTS)

#include "f16_range.glsl"
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
#include "matmul_finish.glsl"

uint block_word(uint i) { return b_words[i]; }
#include "weight_block_at.glsl"

const uint kBlockK = 32u;
// In shared memory rows of A, and columns of B, lie along K, as the units take them: loads of 8 or 16
// bytes, or NVIDIA's ldmatrix, and no shuffles. In vectors of 4, two more than needed: 80 bytes, an
// odd multiple of 16, so that eight of them begin in different banks.
const uint kPitch = kBlockK / 4u + 2u;
const uint kUnit = kUnitM * kUnitN;
const uint kTilesM = kBlockM / kSubgroupsM / kUnitM;  // of a subgroup
const uint kTilesN = kBlockN / kSubgroupsN / kUnitN;
const uint kTiles = kTilesM * kTilesN;
shared f16vec4 a_block[kBlockM * kPitch];
shared f16vec4 b_block[kBlockN * kPitch];
shared float tiles[kSubgroupsM * kSubgroupsN * kUnit];  // one of every subgroup
// From x to y: the steps of K, in whole blocks, in which an element was beyond f16. A vector, since units
// load from multiples of 16 bytes and drivers may lay it out before the blocks.
shared uvec4 wide_steps;

// Where this subgroup's share of the block begins.
uint share_row() { return gl_SubgroupID / kSubgroupsN * (kBlockM / kSubgroupsM); }
uint share_column() { return gl_SubgroupID % kSubgroupsN * (kBlockN / kSubgroupsN); }

uint a_row(uint row) {
  return p.a_offset + gl_WorkGroupID.z * p.a_batch_stride + row * p.a_row_stride;
}
uint b_panel(uint column) {
  return p.b_offset + gl_WorkGroupID.z * p.b_batch_stride +
         column / kPanelColumns * p.b_panel_stride;
}

// Elements k .. k + 3 of a row of A, with zeros outside.
vec4 load_a(uint row, uint k) {
  if (row >= p.m || k >= p.k) return vec4(0.0);
  const uint at = a_row(row) + k;
  if (kAlignedA != 0u && k + 3u < p.k) return a4[at >> 2];
  vec4 v = vec4(0.0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (k + e < p.k) v[e] = a[at + e];
  }
  return v;
}

// Columns column .. column + 3 of step k of B, with zeros outside. Whole panels may be read.
vec4 load_b(uint k, uint column) {
  if (k >= p.k || column >= p.n) return vec4(0.0);
  const uint panel = b_panel(column);
  if (kFormat <= 1u) {
    const uint at = panel + k * p.b_row_stride + column % kPanelColumns;
    return kFormat == 0u ? b4[at >> 2] : unpack_f16x4(b_pairs[at >> 2]);
  }
  vec4 v;
  for (uint e = 0u; e < 4u; ++e) {
    v[e] = block_weight(panel, k, column % kPanelColumns + e);
  }
  return v;
}

f16vec4 narrowed(vec4 v, uint k0) {
  const bvec4 wide = beyond_f16(v);
  if (any(wide)) {
    atomicMin(wide_steps.x, k0);
    atomicMax(wide_steps.y, k0 + kBlockK);
  }
  return f16vec4(mix(v, vec4(0.0), wide));
}

void load_blocks(uint row0, uint column0, uint k0) {
  for (uint t = gl_LocalInvocationID.x; t < kBlockM * (kBlockK / 4u); t += kLocalSize) {
    const uint row = t / (kBlockK / 4u), quad = t % (kBlockK / 4u);
    a_block[row * kPitch + quad] = narrowed(load_a(row0 + row, k0 + 4u * quad), k0);
  }
  // Four steps of four columns, turned over. Neighbouring invocations have neighbouring steps, so that
  // what they store lies in different banks.
  for (uint t = gl_LocalInvocationID.x; t < kBlockK / 4u * (kBlockN / 4u); t += kLocalSize) {
    const uint quad = t % (kBlockK / 4u), column = t / (kBlockK / 4u) * 4u;
    f16vec4 w[4];
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      w[e] = narrowed(load_b(k0 + 4u * quad + e, column0 + column), k0);
    }
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      b_block[(column + e) * kPitch + quad] = f16vec4(w[0][e], w[1][e], w[2][e], w[3][e]);
    }
  }
}

// The products that the units left out.
float wide_products(uint row, uint column) {
  float sum = 0.0;
  if (row >= p.m || column >= p.n) return sum;
  const uint end = min(wide_steps.y, p.k);
  for (uint k = wide_steps.x; k < end; ++k) {
    const float x = a[a_row(row) + k];
    const float w = load_b(k, column / 4u * 4u)[column % 4u];
    if (beyond_f16(x) || beyond_f16(w)) sum = fma(x, w, sum);
  }
  return sum;
}

// Where tile i of this subgroup begins in the block.
uint tile_row(uint i) { return share_row() + i / kTilesN * kUnitM; }
uint tile_column(uint i) { return share_column() + i % kTilesN * kUnitN; }

// The sums of a tile lie in shared memory; its first element is (row, column) of Y.
void finish_tile(uint row, uint column, uint tile) {
  if (has_gate()) {
    for (uint e = 2u * gl_SubgroupInvocationID; e < kUnit; e += 2u * gl_SubgroupSize) {
      finish_pair(row + e / kUnitN, column + e % kUnitN, tiles[tile + e], tiles[tile + e + 1u]);
    }
    return;
  }
  for (uint e = gl_SubgroupInvocationID; e < kUnit; e += gl_SubgroupSize) {
    finish(row + e / kUnitN, column + e % kUnitN, tiles[tile + e]);
  }
}

// A subgroup's sums are indexed by constants only, or they would leave the registers: what is done
// to one after the other is a loop that picks them by comparing. None is stored before all products
// are in it: sums that come back from memory cost compilers a second set of registers.
void main() {
  const uint row0 = gl_WorkGroupID.y * kBlockM;
  const uint column0 = gl_WorkGroupID.x * kBlockN;
  const uint tile = gl_SubgroupID * kUnit;
  coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator> sum[kTiles];
  [[unroll]] for (uint i = 0u; i < kTiles; ++i) {
    sum[i] = coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>(0.0);
  }
  if (gl_LocalInvocationID.x == 0u) {
    wide_steps.xy = uvec2(0xffffffffu, 0u);
  }
  barrier();
  for (uint k0 = 0u; k0 < p.k; k0 += kBlockK) {
    load_blocks(row0, column0, k0);
    barrier();
    for (uint k = 0u; k < kBlockK; k += kUnitK) {
      coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA> x[kTilesM];
      [[unroll]] for (uint i = 0u; i < kTilesM; ++i) {
        coopMatLoad(x[i], a_block, (share_row() + i * kUnitM) * kPitch + k / 4u, kPitch,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (uint j = 0u; j < kTilesN; ++j) {
        coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB> w;
        coopMatLoad(w, b_block, (share_column() + j * kUnitN) * kPitch + k / 4u, kPitch,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0u; i < kTilesM; ++i) {
          sum[i * kTilesN + j] = coopMatMulAdd(x[i], w, sum[i * kTilesN + j]);
        }
      }
    }
    barrier();
  }
  [[dont_unroll]] for (uint i = 0u; i < kTiles; ++i) {
    [[unroll]] for (uint j = 0u; j < kTiles; ++j) {
      if (j == i) coopMatStore(sum[j], tiles, tile, kUnitN, gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    if (wide_steps.y != 0u) {
      for (uint e = gl_SubgroupInvocationID; e < kUnit; e += gl_SubgroupSize) {
        tiles[tile + e] += wide_products(row0 + tile_row(i) + e / kUnitN,
                                         column0 + tile_column(i) + e % kUnitN);
      }
      barrier();
    }
    finish_tile(row0 + tile_row(i), column0 + tile_column(i), tile);
    barrier();
  }
}
