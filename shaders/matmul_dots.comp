#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + bias) + beta C for a few rows, A in signed bytes; products of bytes
//           are added up as integers inside a block
// shapes:   A (M, words of a row; byte_rows.h), B (K, N) in blocks of kFormat, C (M, N) -> Y (M, N)
// mapping:  a workgroup owns kRows rows x (kColumnLanes * 8) columns; an invocation 8 columns of
//           every kSlices-th block of K; x counts row tiles, y column tiles
// bounds:   M, N, K may be anything; b_offset and strides of B are multiples of 8, a_row_stride of
//           4
// requires: kRows * kColumnLanes * kSlices <= 512; integer dot products in the _dot8 variant
// variants: matmul_dots__i8_blocks_f32 DEFINES VKF_BLOCKS=1
//           matmul_dots__i8_blocks_f32_dot8 FEATURES dot8 DEFINES VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul_dots.h"
layout(local_size_x = 8, local_size_x_id = 0) in;  // kColumnLanes * kSlices
VKF_CONSTANTS(VKF_MATMUL_DOTS_CONSTANTS)
const uint kAlignedA = 0u;  // rows of A are words here

layout(push_constant) uniform Params { MatmulParams p; };
#include "float_bits.glsl"
#include "matmul_operands.glsl"
#include "block_dots.glsl"
layout(binding = 0) readonly buffer AWords { uvec4 a_words[]; };
layout(binding = 0) readonly buffer AFacts { uvec2 a_facts[]; };

const uint kInvocations = kColumnLanes * kSlices;
shared vec4 part[2u * kRows * kInvocations];

// Of the rows and of the quads of columns of an invocation.
uint a_row[kRows];
vec4 low[kRows];
vec4 high[kRows];
ivec4 low_dots[kRows];
ivec4 high_dots[kRows];

// The products of a half of a block, and with the last one that shares scales the sums.
void add_half(GroupPlace place, uint block, uint blocks, uint half_block) {
  uvec4 x[kRows];
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    x[i] = a_words[(a_row[i] >> 2) + 2u * block + half_block];
  }
  [[unroll]] for (uint r = 0u; r < 4u; ++r) {
    const WeightRun run = load_run(place, block, 4u * half_block + r);
    const uvec4 w_low = packed_quad(run, 0u);
    [[unroll]] for (uint i = 0u; i < kRows; ++i) low_dots[i] += dots4(w_low, x[i][r]);
    const uvec4 w_high = packed_quad(run, 1u);
    [[unroll]] for (uint i = 0u; i < kRows; ++i) high_dots[i] += dots4(w_high, x[i][r]);
  }
  if (half_block == 0u && !scales_by_half()) return;
  // Read at the end, so that they take no registers before.
  const BlockScales own = run_scales(load_scales(place, block), 4u * half_block);
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    const RowFacts row = row_facts(a_facts[(a_row[i] >> 1) + 4u * blocks + block]);
    const int row_sum = sum_of_part(row, half_block);
    low[i] = add_dots(low[i], low_dots[i], own.low, own.low_offset, row.scale, row_sum);
    high[i] = add_dots(high[i], high_dots[i], own.high, own.high_offset, row.scale, row_sum);
    low_dots[i] = high_dots[i] = ivec4(0);
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x % kColumnLanes;
  // One slice: the same for all invocations, which loads of A then are as well.
  const uint slice = kSlices == 1u ? 0u : gl_LocalInvocationID.x / kColumnLanes;
  const uint row0 = gl_WorkGroupID.x * kRows;
  const uint group0 = gl_WorkGroupID.y * kColumnLanes;
  const uint blocks = (p.k + kBlockSteps - 1u) / kBlockSteps;
  // Rows and groups beyond the matrix repeat the last one; nothing of theirs is stored.
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    a_row[i] = p.a_offset + min(row0 + i, p.m - 1u) * p.a_row_stride;
    low[i] = vec4(0.0);
    high[i] = vec4(0.0);
  }
  const GroupPlace place = place_of(group0 + lane);
  for (uint block = slice; block < blocks; block += kSlices) {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) low_dots[i] = high_dots[i] = ivec4(0);
    // Compilers decide whether to unroll: where the loads of both halves move to the front,
    // registers spill. Scales and minima of both halves are too many registers anyway.
    if (kFormat == kFormatQ2K) {
      [[dont_unroll]] for (uint h = 0u; h < 2u; ++h) add_half(place, block, blocks, h);
    } else {
      for (uint h = 0u; h < 2u; ++h) add_half(place, block, blocks, h);
    }
  }

  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    part[(2u * i) * kInvocations + gl_LocalInvocationID.x] = low[i];
    part[(2u * i + 1u) * kInvocations + gl_LocalInvocationID.x] = high[i];
  }
  barrier();
  // Every invocation finishes some quads: it adds their slices in order.
  for (uint t = gl_LocalInvocationID.x; t < 2u * kRows * kColumnLanes; t += kInvocations) {
    const uint half_row = t / kColumnLanes;
    const uint row = row0 + (half_row >> 1);
    const uint column = 8u * (group0 + t % kColumnLanes) + 4u * (half_row & 1u);
    if (row < p.m && column < p.n) {
      vec4 sum = part[half_row * kInvocations + t % kColumnLanes];
      for (uint s = 1u; s < kSlices; ++s) {
        sum += part[half_row * kInvocations + s * kColumnLanes + t % kColumnLanes];
      }
      store_quad(row, column, finish(sum, load_bias(column), load_addend(row, column)));
    }
  }
}
