#version 450
#extension GL_GOOGLE_include_directive : require
// computes: what attention_units.comp does, with scores, weights and maxima in the registers of the
//           units: reductions, conversions and functions of every element
//           (VK_NV_cooperative_matrix2)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words)
//           -> Y (B, H, T, Ev), each by its HeadLayout
// mapping:  a workgroup owns kSubgroups * kUnitM queries of one head, a subgroup kUnitM of them;
//           a tile is the keys 32 n ... 32 n + 31
// bounds:   T, S, E and Ev may be ragged; kKinds has VKF_KIND_NEAR with causal and windows; kQuads
//           needs E, Ev and every layout in multiples of 4
// requires: cooperative matrices of kUnitM x kUnitN x kUnitN, f16 to f32; kUnitN is a multiple of 4
//           that divides 32; the local size is kSubgroups subgroups; shared memory as in
//           attention_units.cpp
// variants: attention_units_nv__f32_f32_f32_matrix2 FEATURES matrix matrix2
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix2 : require
#include "attention.h"
layout(local_size_x = 128, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_UNITS_NV_CONSTANTS)
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
const uint kDepth = (kWidth + kUnitN - 1) / kUnitN * kUnitN;         // E in whole units
const uint kColumns = (kValueWidth + kUnitN - 1) / kUnitN * kUnitN;  // Ev likewise
const uint kTiles = kColumns / kUnitN;                               // of a subgroup's sums
const uint kParts = kKeys / kUnitN;                                  // of a subgroup's scores
const uint kUnit = kUnitM * kUnitN;
// Rows of shared memory, longer than needed so that they begin in other banks, and at multiples of
// 16 bytes. The first two in vectors of 4.
const uint kPitchQ = kDepth / 4u + 2u;
const uint kPitchKv = (kDepth > kColumns ? kDepth : kColumns) / 4u + 2u;
const uint kPitchScores = kKeys + 4u;
shared f16vec4 q_tile[kRows * kPitchQ];
shared f16vec4 kv_tile[kKeys * kPitchKv];  // keys, then their values
// Where a query or a key is beyond f16, what the units omit; where a value is, weights.
shared float scores[kRows * kPitchScores];
shared float scratch[kSubgroups * kUnit];  // what the units omit from a tile of sums
// x: whether a query is beyond f16; y, z: the last tile, from 1 on, in which a key was, or a value.
// A vector, since units load from multiples of 16 bytes and drivers may lay it out before the
// tiles.
shared uvec4 marks;

#include "attention_unit_tiles.glsl"
#include "attention_unit_scores.glsl"

#define UNIT_SUMS coopmat<float, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseAccumulator>
#define UNIT_LEFT coopmat<float16_t, gl_ScopeSubgroup, kUnitM, kUnitN, gl_MatrixUseA>
#define UNIT_RIGHT coopmat<float16_t, gl_ScopeSubgroup, kUnitN, kUnitN, gl_MatrixUseB>

// Of two elements of a row. A NaN may come out as the higher one; its row becomes NaN in any case.
float added(const in float a, const in float b) { return a + b; }
float higher(const in float a, const in float b) { return keep_max(a, b); }

// Of every element: its row and column in the unit, then the element.
float raised(const in uint32_t row, const in uint32_t column, const in float a, const in float b) {
  return keep_max(a, b);
}
float faded(const in uint32_t row, const in uint32_t column, const in float before,
            const in float now) {
  return online_fade(before, now, p.inverse_temperature);
}
float weighed(const in uint32_t row, const in uint32_t column, const in float score,
              const in float now) {
  return online_weight(score, now, p.inverse_temperature);
}
float counted(const in uint32_t row, const in uint32_t column, const in float weight) {
  return is_masked_weight(weight) ? 0.0 : weight;
}
// place: batch item, head, and the query of the unit's first row; key: of its first column.
float scored(const in uint32_t row, const in uint32_t column, const in float product,
             const in uvec3 place, const in uint key) {
  return finished(product, uvec3(place.xy, min(place.z + row, p.queries - 1u)), key + column);
}
// first: query and column of the unit's first element, and where the head's rows begin in y.
float written(const in uint32_t row, const in uint32_t column, const in float sum,
              const in float total, const in uvec3 first) {
  const float result = online_result(sum, total);
  const uint query = first.x + row, e = first.y + column;
  if (query < p.queries && e < kValueWidth) y[first.z + query * p.y.row_stride + e] = result;
  return result;
}

void begin(uint q_base, uint first) {
  if (gl_LocalInvocationID.x == 0u) marks = uvec4(0u);
  barrier();
  load_queries(q_base, first);
}

// Fills this subgroup's rows of `scores` with the products that the units omit. base: where
// query 0 begins in q, and key 0 in kv; first: query of the subgroup's first row.
void multiply_wide(uvec2 base, uint first_row, uint first, uint tile) {
  for (uint e = gl_SubgroupInvocationID; e < kUnitM * kKeys; e += gl_SubgroupSize) {
    const uint row = e / kKeys, n = e % kKeys, key = tile * kKeys + n;
    const uint query = min(first + row, p.queries - 1u);
    scores[(first_row + row) * kPitchScores + n] =
        key < p.keys ? wide_products(base.x + query * p.q.row_stride, base.y + key * p.k.row_stride)
                     : 0.0;
  }
}

// Fills this subgroup's `scratch` with the weighted values of columns from `column` on that the
// units omit.
void weigh_wide(uint first_row, uint column, uint base, uint tile) {
  for (uint e = gl_SubgroupInvocationID; e < kUnit; e += gl_SubgroupSize) {
    scratch[gl_SubgroupID * kUnit + e] =
        wide_weighted(first_row + e / kUnitN, column + e % kUnitN, base, tile);
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = gl_WorkGroupID.x * kRows;
  const uint first_row = gl_SubgroupID * kUnitM;  // of this subgroup, in the workgroup
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint q_base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride;
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  const uint y_base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  UNIT_SUMS sum[kTiles];
  [[unroll]] for (uint i = 0u; i < kTiles; ++i) sum[i] = UNIT_SUMS(0.0);
  UNIT_SUMS highest = UNIT_SUMS(kLowestFloat), total = UNIT_SUMS(0.0);
  begin(q_base, first);
  const uvec2 keys = key_range(p.terms, first, min(first + kRows, p.queries) - 1u);
  for (uint tile = keys.x / kKeys; keys.x < keys.y && tile * kKeys < keys.y; ++tile) {
    if (load_tile(p.k, k_base, tile, kWidth, kDepth)) atomicMax(marks.y, tile + 1u);
    barrier();
    UNIT_SUMS part[kParts];
    [[unroll]] for (uint n = 0u; n < kParts; ++n) part[n] = UNIT_SUMS(0.0);
    for (uint e = 0u; e < kDepth; e += kUnitN) {
      UNIT_LEFT x;
      coopMatLoad(x, q_tile, first_row * kPitchQ + e / 4u, kPitchQ,
                  gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint n = 0u; n < kParts; ++n) {
        UNIT_RIGHT k;
        coopMatLoad(k, kv_tile, n * kUnitN * kPitchKv + e / 4u, kPitchKv,
                    gl_CooperativeMatrixLayoutColumnMajor);
        part[n] = coopMatMulAdd(x, k, part[n]);
      }
    }
    if (marks.x != 0u || marks.y == tile + 1u) {
      multiply_wide(uvec2(q_base, k_base), first_row, first + first_row, tile);
      barrier();
      [[unroll]] for (uint n = 0u; n < kParts; ++n) {
        UNIT_SUMS more;
        coopMatLoad(more, scores, first_row * kPitchScores + n * kUnitN, kPitchScores,
                    gl_CooperativeMatrixLayoutRowMajor);
        part[n] += more;
      }
    }
    UNIT_SUMS now = highest;
    [[unroll]] for (uint n = 0u; n < kParts; ++n) {
      coopMatPerElementNV(part[n], part[n], scored, uvec3(place, first + first_row),
                          tile * kKeys + n * kUnitN);
      UNIT_SUMS most;
      coopMatReduceNV(most, part[n], gl_CooperativeMatrixReduceRowNV, higher);
      coopMatPerElementNV(now, now, raised, most);
    }
    UNIT_SUMS fade;
    coopMatPerElementNV(fade, highest, faded, now);
    highest = now;
    total *= fade;
    barrier();  // the keys have been read
    if (load_tile(p.v, v_base, tile, kValueWidth, kColumns)) atomicMax(marks.z, tile + 1u);
    barrier();
    const bool wide_value = marks.z == tile + 1u;
    UNIT_LEFT weights[kParts];
    [[unroll]] for (uint n = 0u; n < kParts; ++n) {
      coopMatPerElementNV(part[n], part[n], weighed, now);
      if (wide_value) {
        coopMatStore(part[n], scores, first_row * kPitchScores + n * kUnitN, kPitchScores,
                     gl_CooperativeMatrixLayoutRowMajor);
      }
      coopMatPerElementNV(part[n], part[n], counted);
      UNIT_SUMS more;
      coopMatReduceNV(more, part[n], gl_CooperativeMatrixReduceRowNV, added);
      total += more;
      weights[n] = UNIT_LEFT(part[n]);
    }
    [[unroll]] for (uint i = 0u; i < kTiles; ++i) {
      sum[i] *= fade;
      [[unroll]] for (uint n = 0u; n < kParts; ++n) {
        UNIT_RIGHT v;
        coopMatLoad(v, kv_tile, n * kUnitN * kPitchKv + i * kUnitN / 4u, kPitchKv,
                    gl_CooperativeMatrixLayoutRowMajor);
        sum[i] = coopMatMulAdd(weights[n], v, sum[i]);
      }
    }
    barrier();  // the values have been read, and the weights written
    [[dont_unroll]] for (uint i = wide_value ? 0u : kTiles; i < kTiles; ++i) {
      weigh_wide(first_row, i * kUnitN, v_base, tile);
      barrier();
      UNIT_SUMS more;
      coopMatLoad(more, scratch, gl_SubgroupID * kUnit, kUnitN, gl_CooperativeMatrixLayoutRowMajor);
      // By constants only, or the sums would leave the registers.
      [[unroll]] for (uint j = 0u; j < kTiles; ++j) {
        if (j == i) sum[j] += more;
      }
      barrier();
    }
  }
  [[unroll]] for (uint i = 0u; i < kTiles; ++i) {
    coopMatPerElementNV(sum[i], sum[i], written, total,
                        uvec3(first + first_row, i * kUnitN, y_base));
  }
}
