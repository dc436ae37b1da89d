#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((softcap(scale q k^T) + alibi + bias) / temperature) v by matrix units:
//           factors rounded to f16, exact products, f32 sums and scores; online softmax (Milakov
//           and Gimelshein 2018; in tiles, Dao et al. 2022)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words)
//           -> Y (B, H, T, Ev), each by its HeadLayout
// mapping:  a workgroup owns kSubgroups * kUnitM queries of one head, a subgroup kUnitM of them
//           with their sums in registers; kParts lanes share the softmax of a row; a tile is the
//           keys 32 n ... 32 n + 31
// bounds:   T, S, E and Ev may be ragged; kKinds has VKF_KIND_NEAR with causal and windows; kQuads
//           needs E, Ev and every layout in multiples of 4
// requires: cooperative matrices of kUnitM x kUnitN x kUnitK, f16 to f32; kUnitN and kUnitK are
//           multiples of 4 that divide 32; kLanes, the subgroup's size, divides kUnitM * kParts,
//           and kParts, a power of two, divides kLanes; shared memory as in attention_units.cpp
// variants: attention_units__f32_f32_f32_matrix FEATURES matrix
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "attention.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_UNITS_CONSTANTS)
const uint kRelative = 0u;

#include "f16_range.glsl"
#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 0) readonly buffer QQuads { vec4 q_quads[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 1) readonly buffer KvQuads { vec4 kv_quads[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY(kind) ((kKinds & (kind)) != 0u)
#define VKF_TERM_MAY_SPARSE false
#include "key_range.glsl"
#include "score_terms.glsl"
#include "score_shape.glsl"

const uint kKeys = 32u;  // of a tile
const uint kRows = kSubgroups * kUnitM;
const uint kDepth = (kWidth + kUnitK - 1) / kUnitK * kUnitK;         // E in whole units
const uint kColumns = (kValueWidth + kUnitN - 1) / kUnitN * kUnitN;  // Ev likewise
const uint kTiles = kColumns / kUnitN;                               // of a subgroup's sums
const uint kUnit = kUnitM * kUnitN;
// Rows of shared memory, longer than needed so that they begin in other banks, and at multiples of
// 16 bytes. The first two in vectors of 4.
const uint kPitchQ = kDepth / 4u + 2u;
const uint kPitchKv = (kDepth > kColumns ? kDepth : kColumns) / 4u + 2u;
const uint kPitchWeights = kKeys + 8u;
const uint kPitchScores = kKeys + 4u;
shared f16vec4 q_tile[kRows * kPitchQ];
shared f16vec4 kv_tile[kKeys * kPitchKv];         // keys, then their values
shared float scores[kRows * kPitchScores];        // q k^T, then the weights
shared float16_t weights[kRows * kPitchWeights];  // the same, 0 where masked
shared float scratch[kSubgroups * kUnit];         // a tile of sums of every subgroup
shared float of_row[kRows];  // what the sums of a row are worth now; at the end its total
// x: whether a query is beyond f16. y, z: the last tile, from 1 on, in which a key was, or a value.
// w: the last in which the highest score of a row rose. A vector, since units load from multiples
// of 16 bytes and drivers may lay it out before the tiles.
shared uvec4 marks;

// A lane has every kStep-th row of its subgroup, from its first on, and of these rows every
// kParts-th key.
const uint kStep = kLanes / kParts;
const uint kLaneRows = kUnitM / kStep;
uint lane_row(uint i) {
  return gl_SubgroupID * kUnitM + i * kStep + gl_SubgroupInvocationID / kParts;
}
uint lane_part() { return gl_SubgroupInvocationID % kParts; }
float highest[kLaneRows];
float total[kLaneRows];  // of this lane's keys

#include "attention_unit_tiles.glsl"
#include "attention_unit_scores.glsl"

// scores = q k^T for this subgroup's rows.
void multiply_keys() {
  const uint row = gl_SubgroupID * kUnitM;
  coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator> sum[kKeys / kUnitN];
  [[unroll]] for (uint n = 0u; n < kKeys / kUnitN; ++n) {
    sum[n] = coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>(0.0);
  }
  for (uint e = 0u; e < kDepth; e += kUnitK) {
    coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA> x;
    coopMatLoad(x, q_tile, row * kPitchQ + e / 4u, kPitchQ, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint n = 0u; n < kKeys / kUnitN; ++n) {
      coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB> k;
      coopMatLoad(k, kv_tile, n * kUnitN * kPitchKv + e / 4u, kPitchKv,
                  gl_CooperativeMatrixLayoutColumnMajor);
      sum[n] = coopMatMulAdd(x, k, sum[n]);
    }
  }
  [[unroll]] for (uint n = 0u; n < kKeys / kUnitN; ++n) {
    coopMatStore(sum[n], scores, row * kPitchScores + n * kUnitN, kPitchScores,
                 gl_CooperativeMatrixLayoutRowMajor);
  }
}

// The softmax of this lane's rows over a tile: scores become weights.
void weigh(uvec2 place, uint first, uint tile, uvec2 base) {
  const bool wide = marks.x != 0u || marks.y == tile + 1u;
  [[unroll]] for (uint i = 0u; i < kLaneRows; ++i) {
    const uint row = lane_row(i);
    const uvec3 query = uvec3(place, min(first + row, p.queries - 1u));
    const uvec2 rows = uvec2(base.x + query.z * p.q.row_stride, base.y);
    float now = highest[i];
    for (uint n = lane_part(); n < kKeys; n += kParts) {
      const uint at = row * kPitchScores + n;
      const uint key = tile * kKeys + n;
      if (wide && key < p.keys) scores[at] += wide_products(rows.x, rows.y + key * p.k.row_stride);
      scores[at] = finished(scores[at], query, key);
      now = keep_max(now, scores[at]);
    }
    for (uint step = 1u; step < kParts; step *= 2u) {
      now = keep_max(now, subgroupShuffleXor(now, step));
    }
    const float fade = online_fade(highest[i], now, p.inverse_temperature);
    if (now != highest[i]) atomicMax(marks.w, tile + 1u);
    highest[i] = now;
    total[i] *= fade;
    for (uint n = lane_part(); n < kKeys; n += kParts) {
      const uint at = row * kPitchScores + n;
      const float weight = online_weight(scores[at], now, p.inverse_temperature);
      const float counted = is_masked_weight(weight) ? 0.0 : weight;
      scores[at] = weight;
      weights[row * kPitchWeights + n] = float16_t(counted);
      total[i] += counted;
    }
    if (lane_part() == 0u) of_row[row] = fade;
  }
}

// The sums of a tile of columns lie in `scratch`: y, once each is divided by its row's total.
void write_tile(uvec2 place, uint first, uint column) {
  const uint base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  for (uint e = gl_SubgroupInvocationID; e < kUnit; e += kLanes) {
    const uint row = gl_SubgroupID * kUnitM + e / kUnitN, c = column + e % kUnitN;
    if (first + row >= p.queries || c >= kValueWidth) continue;
    y[base + (first + row) * p.y.row_stride + c] =
        online_result(scratch[gl_SubgroupID * kUnit + e], of_row[row]);
  }
}

// A subgroup's sums are indexed by constants only, or they would leave the registers. What is done
// to one after the other is a loop that picks them by comparing.
void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = gl_WorkGroupID.x * kRows;
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint q_base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride;
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  const uint scratch_at = gl_SubgroupID * kUnit;
  const uint weights_at = gl_SubgroupID * kUnitM * kPitchWeights;
  coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator> sum[kTiles];
  [[unroll]] for (uint i = 0u; i < kTiles; ++i) {
    sum[i] = coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>(0.0);
  }
  [[unroll]] for (uint i = 0u; i < kLaneRows; ++i) {
    highest[i] = kLowestFloat;
    total[i] = 0.0;
  }
  if (gl_LocalInvocationID.x == 0u) marks = uvec4(0u);
  barrier();
  load_queries(q_base, first);
  const uvec2 keys = key_range(p.terms, first, min(first + kRows, p.queries) - 1u);
  for (uint tile = keys.x / kKeys; keys.x < keys.y && tile * kKeys < keys.y; ++tile) {
    if (load_tile(p.k, k_base, tile, kWidth, kDepth)) atomicMax(marks.y, tile + 1u);
    barrier();
    multiply_keys();
    barrier();
    if (load_tile(p.v, v_base, tile, kValueWidth, kColumns)) atomicMax(marks.z, tile + 1u);
    weigh(place, first, tile, uvec2(q_base, k_base));
    barrier();
    const bool wide = marks.z == tile + 1u;
    [[dont_unroll]] for (uint i = wide || marks.w == tile + 1u ? 0u : kTiles; i < kTiles; ++i) {
      [[unroll]] for (uint j = 0u; j < kTiles; ++j) {
        if (j == i) {
          coopMatStore(sum[j], scratch, scratch_at, kUnitN, gl_CooperativeMatrixLayoutRowMajor);
        }
      }
      barrier();
      for (uint e = gl_SubgroupInvocationID; e < kUnit; e += kLanes) {
        const uint row = gl_SubgroupID * kUnitM + e / kUnitN;
        float value = scratch[scratch_at + e] * of_row[row];
        if (wide) value += wide_weighted(row, i * kUnitN + e % kUnitN, v_base, tile);
        scratch[scratch_at + e] = value;
      }
      barrier();
      [[unroll]] for (uint j = 0u; j < kTiles; ++j) {
        if (j == i) {
          coopMatLoad(sum[j], scratch, scratch_at, kUnitN, gl_CooperativeMatrixLayoutRowMajor);
        }
      }
      barrier();
    }
    for (uint k = 0u; k < kKeys; k += kUnitK) {
      coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitK, gl_MatrixUseA> x;
      coopMatLoad(x, weights, weights_at + k, kPitchWeights, gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint i = 0u; i < kTiles; ++i) {
        coopmat<float16_t, gl_ScopeSubgroup, kUnitK, kUnitN, gl_MatrixUseB> v;
        coopMatLoad(v, kv_tile, k * kPitchKv + i * kUnitN / 4u, kPitchKv,
                    gl_CooperativeMatrixLayoutRowMajor);
        sum[i] = coopMatMulAdd(x, v, sum[i]);
      }
    }
    barrier();
  }
  [[unroll]] for (uint i = 0u; i < kLaneRows; ++i) {
    for (uint step = 1u; step < kParts; step *= 2u) total[i] += subgroupShuffleXor(total[i], step);
    if (lane_part() == 0u) of_row[lane_row(i)] = total[i];
  }
  [[dont_unroll]] for (uint i = 0u; i < kTiles; ++i) {
    [[unroll]] for (uint j = 0u; j < kTiles; ++j) {
      if (j == i) {
        coopMatStore(sum[j], scratch, scratch_at, kUnitN, gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    barrier();
    write_tile(place, first, i * kUnitN);
    barrier();
  }
}
