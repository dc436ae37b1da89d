#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the features f of queries and keys: elu(x) + 1 (Katharopoulos et al. 2020), or those of
//           FAVOR+ (Choromanski et al. 2021): exp(w x' - |x'|^2 / 2 - c), x' = x E^(-1/4), of keys
//           without exp and c
// shapes:   X (B, H, T or S, E) by offset and stride, Omega (m, E), Mask (B, ceil(S/32)) words ->
//           F: queries (units, T, M), keys (units, S, M + 1)
// mapping:  a workgroup owns kRows tokens of one unit; z: 0 queries, 1 keys, 2 the values' copy; x
//           and y fold units and tokens, in a step x is the slot and y the head; an invocation
//           takes every kLocalSize-th feature
// bounds:   T, S, E and m may be anything; Mask may be unused; a masked key is not read and its
//           peak is -inf
// requires: nothing (baseline); kRows * (kWidth + kLocalSize) <= 3072
// variants: linear_attention_features__f32_f32_f32
#extension GL_EXT_control_flow_attributes : require
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_FEATURES_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LinearFeaturesParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Omega { float omega[]; };
layout(binding = 2) readonly buffer Mask { uint mask[]; };
layout(binding = 3) buffer F { float f[]; };

shared float row_tile[kRows * kWidth];       // (kRows, E): x'
shared float lane_tile[kRows * kLocalSize];  // (kRows, kLocalSize)

bool is_kept(uint item, uint token) {
  if (kHasMask == 0u) return true;
  const uint words = (p.keys + 31u) >> 5u;
  return (mask[item * words + (token >> 5u)] & (1u << (token & 31u))) != 0u;
}

float elu_plus_one(float value) { return value > 0.0 ? value + 1.0 : exp_nonpositive(value); }

// What the lanes' values of a row come to: their maximum, or their sum.
float row_peak(uint r) {
  float highest = kLowestFloat;
  [[dont_unroll]] for (uint i = 0u; i < kLocalSize; ++i) {
    highest = keep_max(highest, lane_tile[r * kLocalSize + i]);
  }
  return highest;
}

float row_sum(uint r) {
  float sum = 0.0;
  [[dont_unroll]] for (uint i = 0u; i < kLocalSize; ++i) sum += lane_tile[r * kLocalSize + i];
  return sum;
}

uint element_of(HeadLayout at, uint unit, uint token) {
  return at.offset + unit / p.heads * at.batch_stride + unit % p.heads * at.head_stride +
         token * at.row_stride;
}

void copy_values(uint unit, uint to) {
  const uint from = element_of(p.v, unit, 0u);
  for (uint i = gl_LocalInvocationID.x; i < p.value_width; i += kLocalSize) f[to + i] = x[from + i];
}

// x' of the tile's tokens; zeros for those beyond the last and for masked ones.
void load_rows(uint unit, uint first, uint tokens, bool keys) {
  const float scale = kMap == VKF_MAP_FAVOR ? p.scale : 1.0;
  [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < kRows * kWidth; i += kLocalSize) {
    const uint token = first + i / kWidth;
    const bool read = token < tokens && (!keys || is_kept(unit / p.heads, token));
    const uint at = keys ? element_of(p.k, unit, token) : element_of(p.q, unit, token);
    row_tile[i] = read ? x[at + i % kWidth] * scale : 0.0;
  }
}

float value[kRows * kSpread];  // (kRows, kSpread)

// Features n, n + kLocalSize, ... of the tile's rows, w x', into value.
void project(uint n) {
  uint at[kSpread];
  [[unroll]] for (uint i = 0u; i < kRows * kSpread; ++i) value[i] = 0.0;
  [[unroll]] for (uint i = 0u; i < kSpread; ++i) {
    at[i] = min(n + i * kLocalSize, p.features - 1u) * kWidth;
  }
  for (uint e = 0u; e < kWidth; ++e) {
    float w[kSpread];
    [[unroll]] for (uint i = 0u; i < kSpread; ++i) w[i] = omega[at[i] + e];
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      const float element = row_tile[r * kWidth + e];
      [[unroll]] for (uint i = 0u; i < kSpread; ++i) value[r * kSpread + i] += w[i] * element;
    }
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const bool keys = gl_WorkGroupID.z == 1u;
  const uint tokens = keys ? p.keys : p.queries;
  const uint tiles = (tokens + kRows - 1u) / kRows;
  uint local = row_group_index() / tiles;
  uint first = row_group_index() % tiles * kRows;
  if (kStep != 0u) {
    local = gl_WorkGroupID.x * p.heads + gl_WorkGroupID.y;
    first = 0u;
  }
  if (local >= p.units) return;
  const uint unit = p.first_unit + local;
  if (gl_WorkGroupID.z == 2u) {
    copy_values(unit, p.v_offset + local * p.value_width);
    return;
  }
  const uint line = p.features + kHasOne + (keys ? 1u : 0u);
  const uint to = (keys ? p.k_offset : 0u) + (local * tokens + first) * line;
  const uint rows = min(kRows, tokens - first);
  load_rows(unit, first, tokens, keys);
  barrier();

  float halves[kRows];   // |x'|^2 / 2
  float highest[kRows];  // of this lane's features
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    halves[r] = 0.0;
    highest[r] = kLowestFloat;
  }
  if (kMap == VKF_MAP_FAVOR) {
    // Unrolled, all of the tile would stay in registers until project() needs it.
    [[dont_unroll]] for (uint e = 0u; e < kWidth; ++e) {
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        halves[r] += 0.5 * row_tile[r * kWidth + e] * row_tile[r * kWidth + e];
      }
    }
  }
  for (uint n = lane; n < p.features; n += kLocalSize * kSpread) {
    if (kMap == VKF_MAP_FAVOR) project(n);
    [[unroll]] for (uint i = 0u; i < kSpread; ++i) {
      const uint own = n + i * kLocalSize;
      const bool inside = own < p.features;
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        float whole = value[r * kSpread + i];
        if (kMap == VKF_MAP_ELU) whole = inside ? elu_plus_one(row_tile[r * kWidth + own]) : 0.0;
        // Without kernel_eps any c serves, and the norm of a query cancels: so the largest feature
        // becomes 1, whatever the norms. With it c is the maximum of w x', as the formula has it.
        if (kHasOne != 0u && inside) highest[r] = keep_max(highest[r], whole);
        if (kMap == VKF_MAP_FAVOR && (keys || kHasOne != 0u)) whole -= halves[r];
        if (kHasOne == 0u && inside) highest[r] = keep_max(highest[r], whole);
        if (r < rows && inside) f[to + r * line + own] = whole;
      }
    }
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) lane_tile[r * kLocalSize + lane] = highest[r];
  barrier();
  if (keys) {
    [[dont_unroll]] for (uint r = lane; r < rows; r += kLocalSize) {
      const float peak = kMap == VKF_MAP_FAVOR ? row_peak(r) : 0.0;
      const bool kept = is_kept(unit / p.heads, first + r);
      f[to + (r + 1u) * line - 1u] = kept ? peak : negative_infinity();
      if (kHasOne != 0u) f[to + (r + 1u) * line - 2u] = 1.0;
    }
    return;
  }
  if (kMap == VKF_MAP_ELU) return;
  // Queries know their c: the row's own. An invocation reads what it wrote itself.
  [[dont_unroll]] for (uint r = 0u; r < rows; ++r) {
    const float peak = row_peak(r);
    float sum = 0.0;
    for (uint n = lane; n < p.features; n += kLocalSize) {
      const float feature = exp_nonpositive(f[to + r * line + n] - peak) + p.kernel_eps;
      f[to + r * line + n] = feature;
      sum += feature;
    }
    barrier();
    lane_tile[r * kLocalSize + lane] = sum;
  }
  if (kHasOne == 0u) return;
  barrier();
  for (uint r = lane; r < rows; r += kLocalSize) {
    f[to + (r + 1u) * line - 1u] = p.kernel_eps * row_sum(r);
  }
}
