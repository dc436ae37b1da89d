#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C, for a few rows;
//           with kNorm Y = act(alpha norm(A) B + bias), C the gain (K) or gain and bias (2, K);
//           with VKF_EXPERTS every row's products with the experts that C's binding names
// shapes:   A (batch, M, K), B (batch, K, N) row-major, C (batch, M, N) or (N) -> Y (batch, M, N);
//           with VKF_EXPERTS B (X, K, N) packed, Routes (M, entries, 2), and Y (M, choices, N)
// mapping:  a workgroup owns kRows rows x (kColumnLanes * 8) columns; an invocation 8 columns of
//           every kSlices-th block of 4 steps of K; x counts row tiles, so that those of the same
//           columns follow each other and find their weights cached, y column tiles, z batches,
//           with VKF_EXPERTS choices
// bounds:   M, N, K may be anything; b_offset and strides of B are multiples of 8 (N padded);
//           kAlignedA promises that offset and strides of A are multiples of 4; with VKF_BLOCKS B
//           is a packed weight of kFormat
// requires: kRows * kColumnLanes * kSlices <= 512; shaderInt64 in the _int64 variants;
//           matmul_single is one row and four lanes; expert_rows one row and up to eight
// variants: matmul_rows__f32_f32_f32
//           matmul_rows__f32_f16_f32 DEFINES VKF_WEIGHT_F16=1
//           matmul_rows__f32_f32_f32_int64 FEATURES int64
//           matmul_rows__f32_f16_f32_int64 FEATURES int64 DEFINES VKF_WEIGHT_F16=1
//           matmul_single__f32_f32_f32 UNROLLED FEATURES software DEFINES VKF_LITERAL=1
//           matmul_single__f32_f16_f32 UNROLLED FEATURES software DEFINES VKF_LITERAL=1 VKF_WEIGHT_F16=1
//           matmul_rows__f32_blocks_f32 DEFINES VKF_BLOCKS=1
//           matmul_rows__f32_blocks_f32_int64 FEATURES int64 DEFINES VKF_BLOCKS=1
//           matmul_single__f32_blocks_f32 UNROLLED FEATURES software DEFINES VKF_LITERAL=1 VKF_BLOCKS=1
//           expert_rows__f32_f32_f32 DEFINES VKF_EXPERTS=1
//           expert_rows__f32_f16_f32 DEFINES VKF_EXPERTS=1 VKF_WEIGHT_F16=1
//           expert_rows__f32_blocks_f32 DEFINES VKF_EXPERTS=1 VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul.h"
layout(local_size_x = 8, local_size_x_id = 0) in;  // kColumnLanes * kSlices
#if VKF_LITERAL
// Some compilers neither unroll a loop nor take an array apart whose size is specialized.
const uint kRows = 1u, kColumnLanes = 4u, kSlices = 1u, kNorm = 0u, kAhead = 1u;
VKF_CONSTANTS(VKF_MATMUL_ROWS_SWITCHES)
#else
VKF_CONSTANTS(VKF_MATMUL_ROWS_CONSTANTS)
#endif

#if VKF_EXPERTS
#include "experts.h"
layout(push_constant) uniform Params {
  MatmulParams given;
  ExpertParams e;
};
MatmulParams p;  // of one expert
#else
layout(push_constant) uniform Params { MatmulParams p; };
#endif
#include "float_bits.glsl"
#include "matmul_operands.glsl"
#include "matmul_norm.glsl"
#if VKF_EXPERTS
#include "expert_product.glsl"
layout(binding = 2) readonly buffer Routes { uint routes[]; };
#endif

const uint kInvocations = kColumnLanes * kSlices;
#if VKF_BLOCKS
// Whether the scales of one half are held at a time. Those of both, their minima and what
// multiplies them spill where registers are few.
const bool kScalesByHalf = kFormat == kFormatQ2K && kAhead == 1u;
BlockScales begin_scales(GroupPlace place, uint block) {
  BlockScales s;
  if (!kScalesByHalf) s = load_scales(place, block);
  if (!scales_by_half()) s = run_scales(s, 0u);
  return s;
}
BlockScales own_scales(BlockScales s, uint run) {
  if (scales_by_half() && !kScalesByHalf) return run_scales(s, run);
  return s;
}
#endif
shared vec4 part[2u * kRows * kInvocations];

// Partial sums are added in two steps: kSums invocations add a share each, then every invocation
// adds these. One after the other, each partial sum would wait for shared memory.
const uint kSums = 8u;
const uint kShares = kSums < kInvocations ? kSums : kInvocations;

// With slices each invocation has its own share of the rows; without, all add the whole.
void find_moments(uint a_row[kRows]) {
  [[unroll]] for (uint i = 0u; i < kRows; ++i) moments[i] = vec2(0.0);
  if (kSlices == 1u) {
    add_moments(a_row, 0u, 1u);
    return;
  }
  const uint lane = gl_LocalInvocationID.x;
  add_moments(a_row, lane, kInvocations);
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    part[i * kInvocations + lane].xy = moments[i];
    moments[i] = vec2(0.0);
  }
  barrier();
  // Sums of row t / kShares, from `added` on.
  const uint added = kRows * kInvocations;
  for (uint t = lane; t < kRows * kShares; t += kInvocations) {
    vec2 sums = vec2(0.0);
    for (uint i = t % kShares; i < kInvocations; i += kShares) {
      sums += part[t / kShares * kInvocations + i].xy;
    }
    part[added + t].xy = sums;
  }
  barrier();
  for (uint n = 0u; n < kShares; ++n) {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) moments[i] += part[added + i * kShares + n].xy;
  }
  barrier();
}

// Of many slices each invocation first adds a run of one quad, in place of its first.
const uint kRun = kSlices % kSums == 0u ? kSlices / kSums : 1u;
void add_runs() {
  if (kRun == 1u) return;
  for (uint t = gl_LocalInvocationID.x; t < 2u * kRows * kColumnLanes * kSums; t += kInvocations) {
    const uint first = t / (kColumnLanes * kSums) * kInvocations +
                       t / kColumnLanes % kSums * kRun * kColumnLanes + t % kColumnLanes;
    vec4 sum = part[first];
    for (uint s = 1u; s < kRun; ++s) sum += part[first + s * kColumnLanes];
    part[first] = sum;
  }
  barrier();
}

void main() {
  const uint lane = gl_LocalInvocationID.x % kColumnLanes;
  const uint slice = gl_LocalInvocationID.x / kColumnLanes;
  const uint row0 = gl_WorkGroupID.x * kRows;
#if VKF_EXPERTS
  const uint first_column = e.first_column + gl_WorkGroupID.y * kColumnLanes * 8u;
  const uint expert = routes[2u * (gl_WorkGroupID.x * e.entries + gl_WorkGroupID.z)];
  if (!take_panel(expert, first_column)) return;
  const uint group0 = first_column % kPanelColumns / 8u;
#else
  const uint group0 = gl_WorkGroupID.y * kColumnLanes;
#endif
  // Rows and groups beyond the matrix repeat the last one; nothing of theirs is stored.
  uint a_row[kRows];
  vec4 low[kRows], high[kRows];
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    a_row[i] =
        p.a_offset + gl_WorkGroupID.z * p.a_batch_stride + min(row0 + i, p.m - 1u) * p.a_row_stride;
    low[i] = vec4(0.0);
    high[i] = vec4(0.0);
  }
  find_norms(a_row);

#if VKF_BLOCKS
  const GroupPlace place = place_of(group0 + lane);
  for (uint block = slice; block * kBlockSteps < p.k; block += kSlices) {
    BlockScales scales = begin_scales(place, block);
    for (uint first = 0u; first < 8u && block * kBlockSteps + 4u * first < p.k; first += kAhead) {
      if (kScalesByHalf && first % 4u == 0u) scales = run_scales(load_scales(place, block), first);
      WeightRun words[kAhead];
      vec4 x[kAhead * kRows];
      [[unroll]] for (uint t = 0u; t < kAhead; ++t) {
        const uint run =
            t == 0u || block * kBlockSteps + 4u * (first + t) < p.k ? first + t : first;
        words[t] = load_run(place, block, run);
        const uint k = block * kBlockSteps + 4u * run;
        const NormTerms terms = load_norm(k);
        [[unroll]] for (uint i = 0u; i < kRows; ++i) {
          x[t * kRows + i] = normed_inside(k, load_row_inside(a_row[i], k), norm[i], terms);
        }
      }
      [[unroll]] for (uint t = 0u; t < kAhead; ++t) {
        if (t > 0u && block * kBlockSteps + 4u * (first + t) >= p.k) continue;
        const BlockScales own = own_scales(scales, first + t);
        [[unroll]] for (uint s = 0u; s < 4u; ++s) {
          vec4 w_low, w_high;
          weights_of(words[t], own, s, w_low, w_high);
          [[unroll]] for (uint i = 0u; i < kRows; ++i) {
            low[i] = multiply_add(x[t * kRows + i][s], w_low, low[i]);
            high[i] = multiply_add(x[t * kRows + i][s], w_high, high[i]);
          }
        }
      }
    }
  }
#else
  const uint start = group_start(group0 + lane);
  const uint step = group_step();
  const uint whole = p.k & ~3u;
  for (uint k0 = 4u * slice; k0 < whole; k0 += 4u * kSlices * kAhead) {
    vec4 x[kAhead * kRows], w_low[kAhead * 4u], w_high[kAhead * 4u];
    [[unroll]] for (uint t = 0u; t < kAhead; ++t) {
      const uint k = k0 + 4u * kSlices * t;
      const uint inside = t == 0u || k < whole ? k : k0;
      if (kAhead > 1u) {
        [[unroll]] for (uint s = 0u; s < 4u; ++s) {
          load_group(start, (inside + s) * step, w_low[4u * t + s], w_high[4u * t + s]);
        }
      }
      const NormTerms terms = load_norm(inside);
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        x[t * kRows + i] = normed(load_row(a_row[i], inside), norm[i], terms);
      }
    }
    [[unroll]] for (uint t = 0u; t < kAhead; ++t) {
      if (t > 0u && k0 + 4u * kSlices * t >= whole) continue;
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {
        if (kAhead == 1u) load_group(start, (k0 + s) * step, w_low[s], w_high[s]);
        [[unroll]] for (uint i = 0u; i < kRows; ++i) {
          low[i] = multiply_add(x[t * kRows + i][s], w_low[4u * t + s], low[i]);
          high[i] = multiply_add(x[t * kRows + i][s], w_high[4u * t + s], high[i]);
        }
      }
    }
  }
  for (uint k = whole + slice; k < p.k; k += kSlices) {
    vec4 w_low, w_high;
    load_group(start, k * step, w_low, w_high);
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
      const float x = normed_at(k, load_row_at(a_row[i], k), norm[i]);
      low[i] = multiply_add(x, w_low, low[i]);
      high[i] = multiply_add(x, w_high, high[i]);
    }
  }
#endif

  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    part[(2u * i) * kInvocations + gl_LocalInvocationID.x] = low[i];
    part[(2u * i + 1u) * kInvocations + gl_LocalInvocationID.x] = high[i];
  }
  barrier();
  add_runs();
  // Every invocation finishes some quads: it adds their slices in order.
  for (uint t = gl_LocalInvocationID.x; t < 2u * kRows * kColumnLanes; t += kInvocations) {
    const uint half_row = t / kColumnLanes;
    const uint row = row0 + (half_row >> 1);
    const uint column = 8u * (group0 + t % kColumnLanes) + 4u * (half_row & 1u);
    if (row < p.m && column < p.n) {
      vec4 sum = part[half_row * kInvocations + t % kColumnLanes];
      for (uint s = kRun; s < kSlices; s += kRun) {
        sum += part[half_row * kInvocations + s * kColumnLanes + t % kColumnLanes];
      }
#if VKF_EXPERTS
      store_quad(row, column, finish_expert(sum, load_bias(column)));
#else
      store_quad(row, column, finish(sum, load_bias(column), load_addend(row, column)));
#endif
    }
  }
}
