#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C
// shapes:   A (batch, M, K), B (batch, K, N) row-major, C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kRows rows x (kLanes * kGroups * 8) columns, an invocation kRows x
//           (kGroups * 8) of them in registers; x counts row tiles (neighbors share B), y column
//           tiles, z batches
// bounds:   M, N, K may be anything; b_offset and strides of B are multiples of 8 (N padded);
//           kAlignedA promises that offset and strides of A are multiples of 4; the _strided
//           variants take any offset and stride of A and B; with VKF_BLOCKS B is a packed weight
//           of kFormat
// requires: kRows * kGroups * kLanes <= 512; shaderInt64 in the _int64 variants; in the _subgroup
//           variants shuffle and a subgroup of exactly kLanes; the literal variants are 8 x 32,
//           aligned, with subgroups of 4 and quad operations
// variants: matmul_wide__f32_f32_f32 FEATURES software
//           matmul_wide__f32_f16_f32 FEATURES software DEFINES VKF_WEIGHT_F16=1
//           matmul_wide__f32_f32_f32_subgroup FEATURES subgroup software
//           matmul_wide__f32_f16_f32_subgroup FEATURES subgroup software DEFINES VKF_WEIGHT_F16=1
//           matmul_wide__f32_f32_f32_subgroup_int64 FEATURES subgroup int64 software
//           matmul_wide__f32_f32_f32_fp16 FEATURES fp16 software
//           matmul_wide__f32_f16_f32_fp16 FEATURES fp16 software DEFINES VKF_WEIGHT_F16=1
//           matmul_strided__f32_f32_f32 FEATURES software DEFINES VKF_STRIDED=1
//           matmul_strided__f32_f32_f32_subgroup FEATURES subgroup software DEFINES VKF_STRIDED=1
//           matmul_literal__f32_f32_f32_subgroup UNROLLED FEATURES subgroup software DEFINES VKF_LITERAL=1
//           matmul_literal__f32_f16_f32_subgroup UNROLLED FEATURES subgroup software DEFINES VKF_LITERAL=1 VKF_WEIGHT_F16=1
//           matmul_strided__f32_f32_f32_subgroup_literal UNROLLED FEATURES subgroup software DEFINES VKF_LITERAL=1 VKF_STRIDED=1
//           matmul_wide__f32_blocks_f32 FEATURES software DEFINES VKF_BLOCKS=1
//           matmul_wide__f32_blocks_f32_subgroup FEATURES subgroup software DEFINES VKF_BLOCKS=1
//           matmul_literal__f32_blocks_f32_subgroup UNROLLED FEATURES subgroup software DEFINES VKF_LITERAL=1 VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul.h"
layout(local_size_x = 8, local_size_x_id = 0) in;
#if VKF_LITERAL
// Some compilers neither unroll a loop nor take an array apart whose size is specialized.
const uint kLanes = 4u, kRows = 8u, kGroups = 1u, kAlignedA = 1u;
VKF_CONSTANTS(VKF_MATMUL_WIDE_SWITCHES)
#else
VKF_CONSTANTS(VKF_MATMUL_WIDE_CONSTANTS)
#endif

layout(push_constant) uniform Params { MatmulParams p; };
#include "matmul_operands.glsl"
#if VKF_LITERAL
#extension GL_KHR_shader_subgroup_quad : require
#elif VKF_SUBGROUP
#extension GL_KHR_shader_subgroup_shuffle : require
#endif

const uint kQuads = 2u * kGroups;
shared vec4 tile[kRows * kQuads * kLanes];

// Four steps of K of one row. No function: arrays that are handed to one are copied.
#if VKF_LITERAL
// One sum after the other: a compiler that allocates registers in the order of the code keeps it.
#define ADD_ROW(row_, x_)                                                                    \
  {                                                                                          \
    const vec4 x = x_;                                                                       \
    [[unroll]] for (uint c = 0u; c < 4u * kQuads; ++c) {                                     \
      const uint q = c / 4u;                                                                 \
      float v = sum[(row_)*kQuads + q][c % 4u];                                              \
      [[unroll]] for (uint s = 0u; s < 4u; ++s) v = fma(w[s * kQuads + q][c % 4u], x[s], v); \
      sum[(row_)*kQuads + q][c % 4u] = v;                                                    \
    }                                                                                        \
  }
#else
#define ADD_ROW(row_, x_)                                                                     \
  {                                                                                           \
    const vec4 x = x_;                                                                        \
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {                                           \
      vec4 v = sum[(row_)*kQuads + q];                                                        \
      [[unroll]] for (uint s = 0u; s < 4u; ++s) v = multiply_add(x[s], w[s * kQuads + q], v); \
      sum[(row_)*kQuads + q] = v;                                                             \
    }                                                                                         \
  }
#endif

#if !VKF_BLOCKS
// What a quad of columns of a row adds to its sum beyond the whole fours of K.
vec4 add_rest(vec4 sum, uint row, uint group, uint q) {
  for (uint k = p.k & ~3u; k < p.k; ++k) {
    vec4 low, high;
    load_group(group_start(group), k * group_step(), low, high);
    sum = multiply_add(load_row_at(row, k), (q & 1u) == 0u ? low : high, sum);
  }
  return sum;
}
#endif

// What lies in the tile becomes Y.
void store_tile(uint row0, uint group0, uint a_base) {
  for (uint q = 0u; q < kQuads; ++q) {
    const uint group = group0 + (q >> 1) * kLanes;
    const uint column = 8u * group + 4u * (q & 1u);
    const vec4 bias = load_bias(column);
    for (uint i = 0u; i < kRows && row0 + i < p.m; ++i) {
      if (column < p.n) {
        const uint row = a_base + (row0 + i) * p.a_row_stride;
        vec4 v = tile[(i * kQuads + q) * kLanes + gl_LocalInvocationID.x];
#if !VKF_BLOCKS
        v = add_rest(v, row, group, q);
#endif
        store_quad(row0 + i, column, finish(v, bias, load_addend(row0 + i, column)));
      }
    }
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint row0 = gl_WorkGroupID.x * kRows;
  const uint group0 = gl_WorkGroupID.y * kLanes * kGroups + lane;
  const uint a_base = p.a_offset + gl_WorkGroupID.z * p.a_batch_stride;

  vec4 sum[kRows * kQuads];
  [[unroll]] for (uint i = 0u; i < kRows * kQuads; ++i) sum[i] = vec4(0.0);
  // Rows and groups beyond the matrix repeat the last one: the loads stay inside and nothing of
  // theirs is stored. A row's address is the same in all lanes.
  uint a_row[kRows];
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    const uint row = row0 + i < p.m ? row0 + i : p.m - 1u;
    a_row[i] = a_base + row * p.a_row_stride;
  }
#if VKF_SUBGROUP
  // One row a lane, handed round: the subgroup is the workgroup.
  const uint kSlots = (kRows + kLanes - 1u) / kLanes;
  uint my_row[kSlots];
  [[unroll]] for (uint i = 0u; i < kSlots; ++i) {
    const uint row = row0 + i * kLanes + gl_SubgroupInvocationID;
    my_row[i] = a_base + min(row, p.m - 1u) * p.a_row_stride;
  }
#endif
#if VKF_BLOCKS
  GroupPlace place[kGroups];
  BlockScales scales[kGroups];
  [[unroll]] for (uint j = 0u; j < kGroups; ++j) place[j] = place_of(group0 + j * kLanes);
#define LOAD_ROW load_row_inside
  for (uint block = 0u; block * kBlockSteps < p.k; ++block) {
    [[unroll]] for (uint j = 0u; j < kGroups; ++j) scales[j] = load_scales(place[j], block);
    const uint end = min((block + 1u) * kBlockSteps, p.k);
    for (uint k = block * kBlockSteps; k < end; k += 4u) {  // as the loop without blocks
      vec4 w[4 * kQuads];
      [[unroll]] for (uint j = 0u; j < kGroups; ++j) {
        const WeightRun words = load_run(place[j], block, k % kBlockSteps / 4u);
        const BlockScales own = run_scales(scales[j], k % kBlockSteps / 4u);
        [[unroll]] for (uint s = 0u; s < 4u; ++s) {
          const uint q = s * kQuads + 2u * j;
          weights_of(words, own, s, w[q], w[q + 1u]);
        }
      }
#else
#define LOAD_ROW load_row
  uint start[kGroups];
  [[unroll]] for (uint j = 0u; j < kGroups; ++j) start[j] = group_start(group0 + j * kLanes);
  const uint step = group_step();
  const uint whole = p.k & ~3u;
  for (uint k = 0u; k < whole; k += 4u) {
    vec4 w[4 * kQuads];
    [[unroll]] for (uint s = 0u; s < 4u; ++s) {
      [[unroll]] for (uint j = 0u; j < kGroups; ++j) {
        const uint q = s * kQuads + 2u * j;
        load_group(start[j], (k + s) * step, w[q], w[q + 1u]);
      }
    }
#endif
#if VKF_SUBGROUP
      vec4 mine[kSlots];
      [[unroll]] for (uint i = 0u; i < kSlots; ++i) mine[i] = LOAD_ROW(my_row[i], k);
#endif
#if VKF_LITERAL
      // A swap within the quad is one instruction where a broadcast is a dozen. Lane l adds to sum
      // i + j what belongs to row i + (l ^ j).
      [[unroll]] for (uint i = 0u; i < kRows; i += 4u) {
        ADD_ROW(i, mine[i / 4u])
        ADD_ROW(i + 1u, subgroupQuadSwapHorizontal(mine[i / 4u]))
        ADD_ROW(i + 2u, subgroupQuadSwapVertical(mine[i / 4u]))
        ADD_ROW(i + 3u, subgroupQuadSwapDiagonal(mine[i / 4u]))
      }
#else
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
#if VKF_SUBGROUP
      ADD_ROW(i, subgroupShuffle(mine[i / kLanes], i % kLanes))
#else
      ADD_ROW(i, LOAD_ROW(a_row[i], k))
#endif
    }
#endif
    }
#if VKF_BLOCKS
  }  // of the blocks
#endif

  // The sums pass through shared memory, each lane to itself, so that what follows is a loop. The
  // epilogue unrolled over the tile would be more code than the product.
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
#if VKF_LITERAL
    const uint row = (i & ~3u) | ((i ^ gl_SubgroupInvocationID) & 3u);
#else
    const uint row = i;
#endif
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
      tile[(row * kQuads + q) * kLanes + lane] = sum[i * kQuads + q];
    }
  }
  store_tile(row0, group0, a_base);
}
