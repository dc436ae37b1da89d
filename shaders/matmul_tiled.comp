#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C; with kParts > 1
//           sums of parts of K alone, for matmul_parts; with VKF_EXPERTS the products of rows with
//           the experts that they chose
// shapes:   A (batch, M, K), B (batch, K, N), C (batch, M, N) or (N) -> Y (batch, M, N), or
//           (batch, kParts, M, N) with rows that begin at multiples of 4; with VKF_EXPERTS
//           A (M / share, K), B (X, K, N) packed, List of expert_order -> Y (M, N)
// mapping:  a workgroup owns kBlock x kBlock and walks its part of K by kDepth through shared
//           memory: while one half is multiplied, the next loads are under way to the other; an
//           invocation kTileM x kTileN of it; x counts column blocks, y row blocks (with
//           VKF_EXPERTS tiles of the list), z batches and in them parts
// bounds:   M, N, K, every offset and every stride of A and B may be anything (transposes too);
//           kWideA and kWideB promise fours of neighboring elements at multiples of 4, kWholeSteps
//           a K in multiples of kDepth; with VKF_BLOCKS B is a packed weight of kFormat; with
//           VKF_FP16 kDepth products at a time are summed in halves, then in f32, but for factors
//           beyond 512 (A) and 8 (B), which are multiplied in f32
// requires: kBlock / kTileM * kBlock / kTileN = 2 kBlock = the local size; 64 kBlock bytes twice of
//           shared memory <= 16 KiB; with VKF_EXPERTS kBlock is the rows of the list's
//           tiles, at most 32, and workgroups are fewer than 2^16 along x and y
// variants: matmul_tiled__f32_f32_f32
//           matmul_tiled__f32_f16_f32 DEFINES VKF_WEIGHT_F16=1
//           matmul_tiled__f32_blocks_f32 DEFINES VKF_BLOCKS=1
//           matmul_tiled__f32_f32_f32_fp16 FEATURES fp16
//           matmul_tiled__f32_f16_f32_fp16 FEATURES fp16 DEFINES VKF_WEIGHT_F16=1
//           expert_tiled__f32_f32_f32 DEFINES VKF_EXPERTS=1
//           expert_tiled__f32_f16_f32 DEFINES VKF_EXPERTS=1 VKF_WEIGHT_F16=1
//           expert_tiled__f32_blocks_f32 DEFINES VKF_EXPERTS=1 VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#if VKF_FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "matmul.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MATMUL_TILED_CONSTANTS)
const uint kWideA = 1u, kWideB = 2u, kWholeSteps = 4u;

#include "f16_words.glsl"

#if VKF_EXPERTS
#include "experts.h"
layout(push_constant) uniform Params {
  MatmulParams given;
  ExpertParams e;
};
MatmulParams p;  // of one expert, m the rows of the tile
#else
layout(push_constant) uniform Params { MatmulParams p; };
#endif
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
#if VKF_EXPERTS
#include "float_bits.glsl"
#include "expert_product.glsl"
layout(binding = 2) readonly buffer List { uint list[]; };
// For what would otherwise be held from one reading to the next.
layout(binding = 2) volatile readonly buffer ListAgain { uint list_again[]; };
uint first_place;  // of the tile, in the list

uint choice_of(uint row) { return list[first_place + min(row, p.m - 1u)]; }

#endif

const uint kDepth = 8u;  // so every invocation loads four elements of A and of B at a time
const uint kInvocations = 2u * kBlock;
const uint kLanesM = kBlock / kTileM;
const uint kLanesN = kBlock / kTileN;
const uint kQuads = kTileN / 4u;
#if VKF_FP16
#define VKF_FACTORS f16vec4
#else
#define VKF_FACTORS vec4
#endif
// Two halves. A by rows, fours along K; B by steps of K, fours of columns.
shared VKF_FACTORS a_block[2u * kInvocations];
shared VKF_FACTORS b_block[2u * kInvocations];
#if VKF_FP16
// By halves (x, y): the last round, from 1 on, that omits factors.
shared uvec4 wide_round;
#endif

vec4 sum[kTileM * kQuads];

#if VKF_BLOCKS
layout(binding = 1) readonly buffer BQuads { uvec4 b_quads[]; };
uint block_word(uint i) { return b_words[i]; }
uvec4 block_words(uint i) { return b_quads[i]; }
#include "weight_block_at.glsl"
#endif

#if !VKF_BLOCKS
float load_b_at(uint base, uint k, uint column) {
  const uint panel = base + column / kPanelColumns * p.b_panel_stride;
  const uint i = panel + k * p.b_row_stride + column % kPanelColumns * p.b_col_stride;
#if VKF_WEIGHT_F16
  return unpack_f16_at(b_words[i >> 1], i);
#else
  return b[i];
#endif
}
#endif

// Elements k + a_k ... k + a_k + 3 of a row of A whose element a_k is at `start`: one register in
// place of two. From `end` on they are zeros that were never loaded: memory there may hold a NaN.
vec4 load_a(uint start, uint k, uint a_k, uint end) {
  if ((kWide & kWideA) != 0u && ((kWide & kWholeSteps) != 0u || k + a_k + 4u <= end)) {
    return a4[(start + k) >> 2];
  }
  vec4 v = vec4(0.0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (k + a_k + e < end) v[e] = a[start + (k + e) * p.a_col_stride];
  }
  return v;
}

// Where a row of A begins. Rows beyond the matrix repeat the last one; nothing of theirs is stored.
uint a_start(uint batch, uint row) {
#if VKF_EXPERTS
  return p.a_offset + choice_of(row) / e.share * p.a_row_stride;
#else
  return p.a_offset + batch * p.a_batch_stride + min(row, p.m - 1u) * p.a_row_stride;
#endif
}

// Where a column's panel has it in step 0, with kWideB in fours. Those of experts lie in one panel.
uint b_start(uint base, uint column) {
#if VKF_EXPERTS
  return (base + column) >> 2;
#endif
  const uint first = min(column, (p.n - 1u) & ~3u);
  return (base + first / kPanelColumns * p.b_panel_stride + first % kPanelColumns) >> 2;
}

// Columns column..column+3 of step k of B, likewise; `start` is their b_start.
vec4 load_b(uint base, uint start, uint column, uint k, uint end) {
  vec4 v = vec4(0.0);
  if ((kWide & kWholeSteps) == 0u && k >= end) return v;
#if VKF_EXPERTS && VKF_BLOCKS
  return block_quad(base, k, column);
#elif VKF_BLOCKS
  // Columns beyond the matrix repeat its last quad; nothing of theirs is stored.
  const uint inside = min(column, (p.n - 1u) & ~3u);
  return block_quad(base + inside / kPanelColumns * p.b_panel_stride, k, inside % kPanelColumns);
#else
  if ((kWide & kWideB) != 0u) {
    const uint at = start + k * (p.b_row_stride >> 2);
#if VKF_WEIGHT_F16
    return unpack_f16x4(b_pairs[at]);
#else
    return b4[at];
#endif
  }
  [[unroll]] for (uint e = 0u; e < 4u; ++e) v[e] = load_b_at(base, k, min(column + e, p.n - 1u));
  return v;
#endif
}

#if VKF_FP16
// What kDepth products summed in halves can take: 8 * 512 * 8 is half of what a half holds.
bvec4 beyond_a(vec4 v) { return greaterThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x44000000u)); }
bvec4 beyond_b(vec4 v) { return greaterThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x41000000u)); }

// Factors to shared memory; zeros in the place of those that add_wide will multiply.
void store_factors(uint half_block, uint a_place, vec4 x, uint b_place, vec4 w, uint round_number) {
  const bvec4 wide_x = beyond_a(x), wide_w = beyond_b(w);
  a_block[half_block + a_place] = f16vec4(mix(x, vec4(0.0), wide_x));
  b_block[half_block + b_place] = f16vec4(mix(w, vec4(0.0), wide_w));
  if (any(wide_x) || any(wide_w)) atomicMax(wide_round[half_block / kInvocations], round_number);
}

// Packed pairs of columns; each sum of a round in halves, then added to one in f32.
void multiply(uint half_block, uint lane_m, uint lane_n) {
  f16vec4 w[kDepth * kQuads];
  [[unroll]] for (uint s = 0u; s < kDepth; ++s) {
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
      w[s * kQuads + q] = b_block[half_block + s * (kBlock / 4u) + q * kLanesN + lane_n];
    }
  }
  [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
    f16vec4 x[2];
    [[unroll]] for (uint run = 0u; run < 2u; ++run) {
      x[run] = a_block[half_block + 2u * (i * kLanesM + lane_m) + run];
    }
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
      f16vec4 products = f16vec4(x[0][0]) * w[q];
      [[unroll]] for (uint s = 1u; s < kDepth; ++s) {
        products = fma(f16vec4(x[s / 4u][s % 4u]), w[s * kQuads + q], products);
      }
      sum[i * kQuads + q] += vec4(products);
    }
  }
}

// The products of a round that have an omitted factor. Others add zeros. So a row has the same bits
// whatever rows are beside it.
void add_wide(uint batch, uint row, uint column, uint k, uint end) {
  const uint b_base = p.b_offset + batch * p.b_batch_stride;
  [[dont_unroll]] for (uint s = k; s < min(k + kDepth, end); ++s) {
    vec4 w[kQuads], wide_w[kQuads];
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
      const uint first = column + 4u * q * kLanesN;
      w[q] = load_b(b_base, b_start(b_base, first), first, s, end);
      wide_w[q] = mix(vec4(0.0), w[q], beyond_b(w[q]));
    }
    [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
      const float x = a[a_start(batch, row + i * kLanesM) + s * p.a_col_stride];
      const bool wide_x = beyond_a(vec4(x)).x;
      [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
        sum[i * kQuads + q] = fma(vec4(x), wide_x ? w[q] : wide_w[q], sum[i * kQuads + q]);
      }
    }
  }
}
#else
void store_factors(uint half_block, uint a_place, vec4 x, uint b_place, vec4 w, uint round_number) {
  a_block[half_block + a_place] = x;
  b_block[half_block + b_place] = w;
}

// Rows and quads of one invocation lie kLanes apart, so that neighbors read neighbors.
void multiply(uint half_block, uint lane_m, uint lane_n) {
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
}
#endif

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint lane_m = lane / kLanesN;
  const uint lane_n = lane % kLanesN;
#if VKF_EXPERTS
  const uint row0 = 0u;
  if (!take_panel(list[3u * gl_WorkGroupID.y], gl_WorkGroupID.x * kBlock)) return;
  uint column0 = gl_WorkGroupID.x * kBlock % kPanelColumns;
  first_place = e.order + list[3u * gl_WorkGroupID.y + 1u];
  p.m = list[3u * gl_WorkGroupID.y + 2u];
  p.b_batch_stride = p.y_batch_stride = 0u;  // one batch, whose number then takes no register
  if (p.m == 0u) return;
#else
  const uint row0 = gl_WorkGroupID.y * kBlock;
  const uint column0 = gl_WorkGroupID.x * kBlock;
#endif
#if VKF_EXPERTS && VKF_BLOCKS
  // Where registers are few, what a loop holds for later spills. This one holds the group's numbers
  // alone, of which the rest is computed and read again.
  const uint group = gl_WorkGroupID.y << 16 | gl_WorkGroupID.x;
#endif
  const uint batch = gl_WorkGroupID.z / kParts;
  const uint part_steps = ((p.k + kDepth - 1u) / kDepth + kParts - 1u) / kParts * kDepth;
  const uint begin = kParts == 1u ? 0u : min(gl_WorkGroupID.z % kParts * part_steps, p.k);
  const uint end = kParts == 1u ? p.k : min(begin + part_steps, p.k);
  // What this invocation loads: a row of A and where in kDepth, a step of K and columns of B. Both
  // lie at `lane` in their blocks but where neighbors go along the other axis.
  const uint a_row = kAlongM != 0u ? lane % kBlock : lane / 2u;
  const uint a_k = 4u * (kAlongM != 0u ? lane / kBlock : lane % 2u);
  const uint b_column = 4u * (kAlongK != 0u ? lane / kDepth : lane % (kBlock / 4u));
  const uint b_k = kAlongK != 0u ? lane % kDepth : lane / (kBlock / 4u);
  const uint a_place = kAlongM != 0u ? 2u * a_row + a_k / 4u : lane;
  const uint b_place = kAlongK != 0u ? b_k * (kBlock / 4u) + b_column / 4u : lane;
  const uint a_at = a_start(batch, row0 + a_row) + a_k * p.a_col_stride;
  const uint b_base = p.b_offset + batch * p.b_batch_stride;
  const uint b_at = b_start(b_base, column0 + b_column);

  [[unroll]] for (uint i = 0u; i < kTileM * kQuads; ++i) sum[i] = vec4(0.0);
  vec4 next_a = load_a(a_at, begin, a_k, end);
  vec4 next_b = load_b(b_base, b_at, column0 + b_column, begin + b_k, end);
#if VKF_FP16
  if (lane == 0u) wide_round = uvec4(0u);
  barrier();
#endif
  for (uint k0 = begin; k0 < end; k0 += kDepth) {
    const uint half_block = k0 / kDepth % 2u * kInvocations;
    store_factors(half_block, a_place, next_a, b_place, next_b, k0 / kDepth + 1u);
    barrier();  // one a round: a writer of this half has passed the barrier of the other
    if (k0 + kDepth < end) {
      next_a = load_a(a_at, k0 + kDepth, a_k, end);
      next_b = load_b(b_base, b_at, column0 + b_column, k0 + kDepth + b_k, end);
    }
    multiply(half_block, lane_m, lane_n);
#if VKF_FP16
    if (wide_round[half_block / kInvocations] == k0 / kDepth + 1u) {
      add_wide(batch, row0 + lane_m, column0 + 4u * lane_n, k0, end);
    }
#endif
  }
#if VKF_EXPERTS && VKF_BLOCKS
  const uint in_expert = (group & 0xffffu) * kBlock / kPanelColumns;
  const uint tile = 3u * (group >> 16);
  take_results(in_expert, panel_of(list_again[tile], in_expert));
  column0 = (group & 0xffffu) * kBlock % kPanelColumns;
  first_place = e.order + list_again[tile + 1u];
  p.m = list_again[tile + 2u];
#endif
  [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
    const uint column = column0 + 4u * (q * kLanesN + lane_n);
    if (column >= p.n) continue;
    const vec4 bias = kParts > 1u ? vec4(0.0) : load_bias(column);
    [[unroll]] for (uint i = 0u; i < kTileM; ++i) {
      const uint row = row0 + i * kLanesM + lane_m;
      if (row >= p.m) continue;
      if (kParts > 1u) {
        y4[(p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column) >>
           2] = sum[i * kQuads + q];
        continue;
      }
#if VKF_EXPERTS
      store_quad(list[first_place + row], column, finish_expert(sum[i * kQuads + q], bias));
#else
      store_quad(row, column, finish(sum[i * kQuads + q], bias, load_addend(row, column)));
#endif
    }
  }
}
