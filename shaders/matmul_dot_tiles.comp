#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + bias) + beta C, A in signed bytes, whose products with B's values
//           are added up as integers, block by block; sums in the order of matmul_dots with one
//           slice
// shapes:   A (M, words of a row; byte_rows.h), B (K, N) in blocks of kFormat, C (M, N) -> Y (M, N)
// mapping:  a workgroup owns kBlock x kBlock elements of Y, an invocation kTileM rows x 4 columns;
//           two blocks of K at a time lie in shared memory; x counts column tiles, y row tiles
// bounds:   M, N, K may be anything; b_offset and strides of B are multiples of 8, a_row_stride of
//           4
// requires: kBlock is 32 or 64, so that 11 KiB of shared memory are the most; integer dot products
//           in the _dot8 variant
// variants: matmul_dot_tiles__i8_blocks_f32 DEFINES VKF_BLOCKS=1
//           matmul_dot_tiles__i8_blocks_f32_dot8 FEATURES dot8 DEFINES VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul_dots.h"
layout(local_size_x = 128, local_size_x_id = 0) in;  // 2 kBlock
VKF_CONSTANTS(VKF_MATMUL_DOT_TILES_CONSTANTS)
const uint kAlignedA = 0u;  // rows of A are words here

layout(push_constant) uniform Params { MatmulParams p; };
#include "float_bits.glsl"
#include "matmul_operands.glsl"
#include "block_dots.glsl"
layout(binding = 0) readonly buffer AWords { uvec4 a_words[]; };
layout(binding = 0) readonly buffer AFacts { uvec2 a_facts[]; };

const uint kStaged = 2u;  // blocks of K in shared memory
const uint kQuads = kBlock / 4u;
const uint kGroups = kBlock / 8u;
const uint kRowQuads = kTileM / 4u;
const uint kInvocations = 2u * kBlock;

// By block, by run of 4 steps, then four rows or columns in a vector.
shared uvec4 a_values[kStaged * kBlockRuns * kQuads];
shared uvec4 b_values[kStaged * kBlockRuns * kQuads];
shared uvec2 a_scales[kStaged * kBlock];
// By block, by half, then four columns in a vector.
shared vec4 b_scales[kStaged * 2u * kQuads];
shared vec4 b_offsets[kStaged * 2u * kQuads];

// Four rows of half a block, turned round.
void stage_rows(uint row0, uint block0, uint blocks) {
  for (uint t = gl_LocalInvocationID.x; t < kStaged * 2u * kQuads; t += kInvocations) {
    const uint quad = t % kQuads, half_block = t / kQuads % 2u, block = t / kQuads / 2u;
    uvec4 rows[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uint row = p.a_offset + min(row0 + 4u * quad + i, p.m - 1u) * p.a_row_stride;
      rows[i] = a_words[(row >> 2) + 2u * min(block0 + block, blocks - 1u) + half_block];
    }
    [[unroll]] for (uint r = 0u; r < 4u; ++r) {
      a_values[(block * kBlockRuns + 4u * half_block + r) * kQuads + quad] =
          uvec4(rows[0][r], rows[1][r], rows[2][r], rows[3][r]);
    }
  }
  for (uint t = gl_LocalInvocationID.x; t < kStaged * kBlock; t += kInvocations) {
    const uint row = p.a_offset + min(row0 + t % kBlock, p.m - 1u) * p.a_row_stride;
    const uint block = min(block0 + t / kBlock, blocks - 1u);
    a_scales[t] = a_facts[(row >> 1) + 4u * blocks + block];
  }
}

// Eight columns of a run, then of the scales of half a block.
void stage_columns(uint group0, uint block0, uint blocks) {
  for (uint t = gl_LocalInvocationID.x; t < kStaged * kBlockRuns * kGroups; t += kInvocations) {
    const uint group = t % kGroups, run = t / kGroups % kBlockRuns;
    const uint block = t / kGroups / kBlockRuns;
    const WeightRun words =
        load_run(place_of(group0 + group), min(block0 + block, blocks - 1u), run);
    const uint at = (block * kBlockRuns + run) * kQuads + 2u * group;
    b_values[at] = packed_quad(words, 0u);
    b_values[at + 1u] = packed_quad(words, 1u);
  }
  for (uint t = gl_LocalInvocationID.x; t < kStaged * 2u * kGroups; t += kInvocations) {
    const uint group = t % kGroups, half_block = t / kGroups % 2u, block = t / kGroups / 2u;
    if (half_block == 1u && !scales_by_half()) continue;
    const BlockScales own = run_scales(
        load_scales(place_of(group0 + group), min(block0 + block, blocks - 1u)), 4u * half_block);
    const uint at = (2u * block + half_block) * kQuads + 2u * group;
    b_scales[at] = own.low;
    b_scales[at + 1u] = own.high;
    if (has_minima() || minima_of_supers()) {
      b_offsets[at] = own.low_offset;
      b_offsets[at + 1u] = own.high_offset;
    }
  }
}

vec4 sum[kTileM];

// The products of one block, of the rows from 4 quad_m on and the columns from 4 quad_n on.
void multiply(uint block, uint quad_m, uint quad_n) {
  ivec4 dots[kTileM];
  [[unroll]] for (uint i = 0u; i < kTileM; ++i) dots[i] = ivec4(0);
  [[unroll]] for (uint half_block = 0u; half_block < 2u; ++half_block) {
    [[unroll]] for (uint r = 0u; r < 4u; ++r) {
      const uint at = (block * kBlockRuns + 4u * half_block + r) * kQuads;
      const uvec4 w = b_values[at + quad_n];
      [[unroll]] for (uint q = 0u; q < kRowQuads; ++q) {
        const uvec4 x = a_values[at + quad_m + q];
        [[unroll]] for (uint e = 0u; e < 4u; ++e) dots[4u * q + e] += dots4(w, x[e]);
      }
    }
    if (half_block == 0u && !scales_by_half()) continue;
    const uint at = (2u * block + (scales_by_half() ? half_block : 0u)) * kQuads + quad_n;
    const vec4 scale = b_scales[at];
    const vec4 offset = has_minima() || minima_of_supers() ? b_offsets[at] : vec4(0.0);
    [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
      const RowFacts row = row_facts(a_scales[block * kBlock + 4u * quad_m + i]);
      sum[i] = add_dots(sum[i], dots[i], scale, offset, row.scale, sum_of_part(row, half_block));
      dots[i] = ivec4(0);
    }
  }
}

void main() {
  const uint row0 = gl_WorkGroupID.y * kBlock;
  const uint column0 = gl_WorkGroupID.x * kBlock;
  const uint blocks = (p.k + kBlockSteps - 1u) / kBlockSteps;
  const uint quad_n = gl_LocalInvocationID.x % kQuads;
  const uint quad_m = gl_LocalInvocationID.x / kQuads * kRowQuads;
  [[unroll]] for (uint i = 0u; i < kTileM; ++i) sum[i] = vec4(0.0);
  for (uint block0 = 0u; block0 < blocks; block0 += kStaged) {
    stage_rows(row0, block0, blocks);
    stage_columns(column0 / 8u, block0, blocks);
    barrier();
    for (uint block = 0u; block < kStaged; ++block) {
      if (block0 + block < blocks) multiply(block, quad_m, quad_n);
    }
    barrier();
  }
  const uint column = column0 + 4u * quad_n;
  if (column >= p.n) return;
  const vec4 bias = load_bias(column);
  [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
    const uint row = row0 + 4u * quad_m + i;
    if (row >= p.m) continue;
    store_quad(row, column, finish(sum[i], bias, load_addend(row, column)));
  }
}
