#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y_i = sum_j w_ij v_j / (sum_j w_ij + epsilon), w_ij = f_i . f_j, by the state of the
//           keys before the query's chunk and, causal, the chunk's own keys up to the query
//           (Katharopoulos et al. 2020)
// shapes:   X: v (B, H, S, Ev) by offset and stride, F: queries (units, T, M), keys (units, S, M +
//           1), States (units, chunks, M * (Ev + 1) + 2) -> Y (B, H, T, Ev) by offset and stride
// mapping:  a workgroup owns kRows queries of one unit (x and y fold both); an invocation every
//           kLocalSize-th column of v, and one key of a tile
// bounds:   T, S, M and Ev may be anything; causal: kRows divides a chunk
// requires: nothing (baseline); kRows * (64 + kLocalSize) words of shared memory
// variants: linear_attention_output__f32_f32_f32
#extension GL_EXT_control_flow_attributes : require
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_OUTPUT_CONSTANTS)
const uint kColumns = (kValueWidth + kLocalSize - 1u) / kLocalSize;
const uint kTile = 64u;  // features

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LinearOutputParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer F { float f[]; };
layout(binding = 2) readonly buffer States { float states[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

shared float query_tile[kRows * kTile];        // (kRows, kTile): features
shared float weight_tile[kRows * kLocalSize];  // (kRows, kLocalSize): w of a tile of keys
shared uint seen_tile[kLocalSize];             // 0: a masked key

float sum[kRows * kColumns];
float total[kRows];

// Features n0 ... of the tile's queries; zeros beyond the last query or feature.
void load_queries(uint base, uint rows, uint n0) {
  if (kDirect != 0u) return;
  barrier();
  [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < kRows * kTile; i += kLocalSize) {
    const uint n = n0 + i % kTile;
    const bool read = i / kTile < rows && n < p.features;
    query_tile[i] = read ? f[base + i / kTile * p.features + n] : 0.0;
  }
  barrier();
}

// Feature n0 + n of query r, of the tile that was loaded last.
float query_feature(uint base, uint rows, uint r, uint n0, uint n) {
  return kDirect != 0u ? f[base + min(r, rows - 1u) * p.features + n0 + n]
                       : query_tile[r * kTile + n];
}

void add_state(uint queries, uint rows, uint state) {
  const uint line = kValueWidth + 1u;
  for (uint n0 = 0u; n0 < p.features; n0 += kTile) {
    load_queries(queries, rows, n0);
    const uint count = min(kTile, p.features - n0);
    [[dont_unroll]] for (uint n = 0u; n < count; ++n) {
      const uint row = state + (n0 + n) * line;
      const float one = states[row + kValueWidth];
      float v[kColumns];
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        v[c] = states[row + min(gl_LocalInvocationID.x + c * kLocalSize, kValueWidth - 1u)];
      }
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        const float weight = query_feature(queries, rows, r, n0, n);
        total[r] += weight * one;
        [[unroll]] for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] += weight * v[c];
      }
    }
  }
}

// w of this invocation's key with every query of the tile, into weight_tile.
void weigh_key(uint queries, uint rows, uint key, bool inside, float peak) {
  float weight[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) weight[r] = 0.0;
  for (uint n0 = 0u; n0 < p.features; n0 += kTile) {
    load_queries(queries, rows, n0);
    const uint count = min(kTile, p.features - n0);
    [[dont_unroll]] for (uint n = 0u; n < count; ++n) {
      float value = inside ? f[key + n0 + n] : 0.0;
      const bool one = kHasOne != 0u && n0 + n + 1u == p.features;
      if (kFades != 0u && !one) value = exp_nonpositive(value - peak);
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        weight[r] += query_feature(queries, rows, r, n0, n) * value;
      }
    }
  }
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint r = 0u; r < kRows; ++r) weight_tile[r * kLocalSize + lane] = weight[r];
  seen_tile[lane] = inside && !is_negative_infinity(f[key + p.features]) ? 1u : 0u;
  barrier();
}

// The keys first ... of the queries' own chunk; query row r sees those up to itself.
void add_chunk(uint queries, uint rows, uint first, uint query, uint unit, float peak) {
  const uint end = min(query + rows, p.keys);
  const uint values =
      p.v.offset + unit / p.heads * p.v.batch_stride + unit % p.heads * p.v.head_stride;
  const uint keys = p.k_offset + (unit - p.first_unit) * p.keys * (p.features + 1u);
  for (uint tile = first; tile < end; tile += kLocalSize) {
    const uint own = tile + gl_LocalInvocationID.x;
    weigh_key(queries, rows, keys + own * (p.features + 1u), own < end, peak);
    const uint count = min(kLocalSize, end - tile);
    [[dont_unroll]] for (uint j = 0u; j < count; ++j) {
      if (seen_tile[j] == 0u) continue;
      const uint row = values + (tile + j) * p.v.row_stride;
      float v[kColumns];
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        v[c] = x[row + min(gl_LocalInvocationID.x + c * kLocalSize, kValueWidth - 1u)];
      }
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        if (tile + j <= query + r) {
          const float weight = weight_tile[r * kLocalSize + j];
          total[r] += weight;
          [[unroll]] for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] += weight * v[c];
        }
      }
    }
    barrier();
  }
}

void main() {
  const uint tiles = (p.queries + kRows - 1u) / kRows;
  const uint local = row_group_index() / tiles;
  const uint query = row_group_index() % tiles * kRows;
  if (local >= p.units) return;
  const uint unit = p.first_unit + local;
  const uint rows = min(kRows, p.queries - query);
  const uint queries = (local * p.queries + query) * p.features;
  const uint words = p.features * (kValueWidth + 1u) + 2u;
  const uint chunk = kCausal != 0u ? query / p.chunk : 0u;
  const uint state = p.state_offset + (local * p.chunks + chunk) * words;
  [[unroll]] for (uint i = 0u; i < kRows * kColumns; ++i) sum[i] = 0.0;
  [[unroll]] for (uint r = 0u; r < kRows; ++r) total[r] = 0.0;
  add_state(queries, rows, state);
  if (kCausal != 0u) {
    const float peak = kFades != 0u ? states[state + words - 1u] : 0.0;
    add_chunk(queries, rows, chunk * p.chunk, query, unit, peak);
  }
  const uint to = p.y.offset + unit / p.heads * p.y.batch_stride + unit % p.heads * p.y.head_stride;
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const uint column = gl_LocalInvocationID.x + c * kLocalSize;
      if (r < rows && column < kValueWidth) {
        y[to + (query + r) * p.y.row_stride + column] =
            online_result(sum[r * kColumns + c], total[r] + p.epsilon);
      }
    }
  }
}
