#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C, by matrix units:
//           factors rounded to f16, exact products, f32 sums (VK_KHR_cooperative_matrix)
// shapes:   A (batch, M, K), B (batch, K, N), C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kBlockM x kBlockN and walks K by kBlockK through shared memory, the
//           loads of the next step under way while the units multiply; a subgroup an even share of
//           it in tiles of kUnitM x kUnitN; x counts column blocks, y row blocks, z batches
// bounds:   M, N and K may be anything; rows of A anywhere, with elements next to each other; B is
//           a packed weight of kFormat in whole panels
// requires: cooperative matrices of kUnitM x kUnitN x kUnitK, f16 to f32; kSubgroupsM * kUnitM
//           divides kBlockM, kSubgroupsN * kUnitN kBlockN, kUnitK kBlockK; kUnitN is even; the
//           local size is kSubgroupsM * kSubgroupsN subgroups; shared memory as in
//           matmul_strategy.cpp
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

layout(binding = 1) readonly buffer BQuads { uvec4 b_quads[]; };
uint block_word(uint i) { return b_words[i]; }
uvec4 block_words(uint i) { return b_quads[i]; }
#include "weight_block_at.glsl"

const uint kBlockK = 32u;
// In shared memory rows of A, and columns of B, lie along K, as the units take them. These are
// loads of 8 or 16 bytes, or NVIDIA's ldmatrix, and no shuffles. In vectors of 4, two more than
// needed: 80 bytes, an odd multiple of 16, so that eight of them begin in different banks.
const uint kPitch = kBlockK / 4u + 2u;
const uint kUnit = kUnitM * kUnitN;
const uint kTilesM = kBlockM / kSubgroupsM / kUnitM;  // of a subgroup
const uint kTilesN = kBlockN / kSubgroupsN / kUnitN;
const uint kTiles = kTilesM * kTilesN;
// Units with fewer rows are Intel's, whose 128 registers of a thread have no room for the next
// step.
const bool kAhead = kUnitM >= 16u;
shared f16vec4 a_block[kBlockM * kPitch];
shared f16vec4 b_block[kBlockN * kPitch];
shared float tiles[kSubgroupsM * kSubgroupsN * kUnit];  // one of every subgroup
// From x to y: the steps of K, in whole blocks, in which an element was beyond f16. A vector, since
// units load from multiples of 16 bytes and drivers may lay it out before the blocks.
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
  vec4 v = vec4(0.0);
  if (row >= p.m) return v;
  const uint at = a_row(row) + k;
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (k + e < p.k) v[e] = a[at + e];
  }
  return v;
}

// Columns column .. column + 3 of step k of B as they lie in memory; in blocks, their bits. Steps
// and columns outside give those of the last.
uvec4 load_b(uint k, uint column) {
  k = min(k, p.k - 1u);
  column = min(column, (p.n - 1u) & ~3u);
  const uint panel = b_panel(column);
  if (kFormat <= 1u) {
    const uint at = (panel + k * p.b_row_stride + column % kPanelColumns) >> 2;
    return kFormat == 0u ? floatBitsToUint(b4[at]) : uvec4(b_pairs[at], 0u, 0u);
  }
  return floatBitsToUint(block_quad(panel, k, column % kPanelColumns));
}

vec4 weights_of(uvec4 loaded) {
  return kFormat == 1u ? unpack_f16x4(loaded.xy) : uintBitsToFloat(loaded);
}

f16vec4 narrowed(vec4 v, uint k0) {
  const bvec4 wide = beyond_f16(v);
  if (any(wide)) {
    atomicMin(wide_steps.x, k0);
    atomicMax(wide_steps.y, k0 + kBlockK);
  }
  return f16vec4(mix(v, vec4(0.0), wide));
}

// What an invocation loads of a step: quads of A along K; of B four steps of four columns, which it
// turns over. Neighboring invocations have neighboring steps, so that what they store lies in
// different banks. Places are always inside, with no test between loads: after a test, each would
// be waited for before the next. What lies outside becomes zeros when it is stored.
const uint kQuadsK = kBlockK / 4u;
const uint kLoadsA = (kBlockM * kQuadsK + kLocalSize - 1u) / kLocalSize;
const uint kLoadsB = (kBlockN / 4u * kQuadsK + kLocalSize - 1u) / kLocalSize;
vec4 next_a[kLoadsA];
uvec4 next_b[4u * kLoadsB];

// Whether quads of A lie in one vector each.
bool whole_quads() { return kAlignedA != 0u && p.k % 4u == 0u; }

vec4 load_a_quad(uint t, uint row0, uint k0) {
  const uint row = a_row(min(row0 + t / kQuadsK, p.m - 1u));
  return a4[(row + min(k0 + 4u * (t % kQuadsK), p.k - 4u)) >> 2];
}

void store_a_quad(uint t, vec4 loaded, uint k0) {
  const bool inside = k0 + 4u * (t % kQuadsK) < p.k;
  if (t < kBlockM * kQuadsK) {
    a_block[t / kQuadsK * kPitch + t % kQuadsK] = narrowed(inside ? loaded : vec4(0.0), k0);
  }
}

uvec4 load_b_quad(uint t, uint e, uint column0, uint k0) {
  return load_b(k0 + 4u * (t % kQuadsK) + e, column0 + t / kQuadsK * 4u);
}

void store_b_quads(uint t, uvec4 loaded[4], uint k0) {
  if (t >= kBlockN / 4u * kQuadsK) return;
  f16vec4 w[4];
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    const bool inside = k0 + 4u * (t % kQuadsK) + e < p.k;
    w[e] = narrowed(inside ? weights_of(loaded[e]) : vec4(0.0), k0);
  }
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    b_block[(t / kQuadsK * 4u + e) * kPitch + t % kQuadsK] =
        f16vec4(w[0][e], w[1][e], w[2][e], w[3][e]);
  }
}

void load_step(uint row0, uint column0, uint k0) {
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint i = 0u; i < kLoadsB; ++i) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      next_b[4u * i + e] = load_b_quad(lane + i * kLocalSize, e, column0, k0);
    }
  }
  if (whole_quads()) {
    [[unroll]] for (uint i = 0u; i < kLoadsA; ++i) {
      next_a[i] = load_a_quad(lane + i * kLocalSize, row0, k0);
    }
  } else {
    [[unroll]] for (uint i = 0u; i < kLoadsA; ++i) {
      const uint t = lane + i * kLocalSize;
      next_a[i] = load_a(row0 + t / kQuadsK, k0 + 4u * (t % kQuadsK));
    }
  }
}

void store_step(uint k0) {
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint i = 0u; i < kLoadsA; ++i) {
    store_a_quad(lane + i * kLocalSize, next_a[i], k0);
  }
  [[unroll]] for (uint i = 0u; i < kLoadsB; ++i) {
    const uint at = 4u * i;
    const uvec4 loaded[4] = {next_b[at], next_b[at + 1u], next_b[at + 2u], next_b[at + 3u]};
    store_b_quads(lane + i * kLocalSize, loaded, k0);
  }
}

// Both, for units without registers for a whole step.
void move_step(uint row0, uint column0, uint k0) {
  for (uint t = gl_LocalInvocationID.x; t < kBlockM * kQuadsK; t += kLocalSize) {
    const vec4 quad = whole_quads() ? load_a_quad(t, row0, k0)
                                    : load_a(row0 + t / kQuadsK, k0 + 4u * (t % kQuadsK));
    store_a_quad(t, quad, k0);
  }
  for (uint t = gl_LocalInvocationID.x; t < kBlockN / 4u * kQuadsK; t += kLocalSize) {
    uvec4 loaded[4];
    [[unroll]] for (uint e = 0u; e < 4u; ++e) loaded[e] = load_b_quad(t, e, column0, k0);
    store_b_quads(t, loaded, k0);
  }
}

// The products that the units omit.
float wide_products(uint row, uint column) {
  float sum = 0.0;
  if (row >= p.m || column >= p.n) return sum;
  const uint end = min(wide_steps.y, p.k);
  for (uint k = wide_steps.x; k < end; ++k) {
    const float x = a[a_row(row) + k];
    const float w = weights_of(load_b(k, column / 4u * 4u))[column % 4u];
    if (beyond_f16(x) || beyond_f16(w)) sum = fma(x, w, sum);
  }
  return sum;
}

// A tile in shared memory belongs to one subgroup.
void subgroup_barrier() {
  subgroupMemoryBarrierShared();
  subgroupBarrier();
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

// A subgroup's sums are indexed by constants only, or they would leave the registers. What is done
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
  if (gl_LocalInvocationID.x == 0u) { wide_steps.xy = uvec2(0xffffffffu, 0u); }
  barrier();
  if (kAhead && p.k > 0u) load_step(row0, column0, 0u);
  for (uint k0 = 0u; k0 < p.k; k0 += kBlockK) {
    if (kAhead) {
      store_step(k0);
    } else {
      move_step(row0, column0, k0);
    }
    barrier();
    if (kAhead && k0 + kBlockK < p.k) load_step(row0, column0, k0 + kBlockK);
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
    subgroup_barrier();
    if (wide_steps.y != 0u) {
      for (uint e = gl_SubgroupInvocationID; e < kUnit; e += gl_SubgroupSize) {
        tiles[tile + e] +=
            wide_products(row0 + tile_row(i) + e / kUnitN, column0 + tile_column(i) + e % kUnitN);
      }
      subgroup_barrier();
    }
    finish_tile(row0 + tile_row(i), column0 + tile_column(i), tile);
    subgroup_barrier();
  }
}
