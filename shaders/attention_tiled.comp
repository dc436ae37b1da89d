#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((scale q k^T + alibi + bias) / temperature) v in one pass over the keys (online softmax, Milakov and Gimelshein 2018; in tiles, Dao et al. 2022)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words) -> Y (B, H, T, Ev), each by its HeadLayout
// mapping:  a workgroup owns kRows queries of one head; an invocation first one key of a tile, then every kLocalSize-th value column
// bounds:   T, S, E and Ev may be ragged; E * kRows floats fit shared memory; kQuads needs rows of k that start at multiples of 4
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kWidth = 64;       // E
layout(constant_id = 3) const uint kValueWidth = 64;  // Ev
layout(constant_id = 4) const uint kQuads = 0;        // 1: read k four elements at a time
layout(constant_id = 5) const uint kSparse = 0;       // 1: there are sparse terms
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;  // of one invocation
const uint kPitch = kLocalSize + 1;                                 // spreads rows over banks

#include "attention.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 1) readonly buffer KvQuads { vec4 kv_quads[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

#define VKF_TERM_HEADS p.heads
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY_SPARSE (kSparse != 0u)
#include "key_range.glsl"
#include "score_terms.glsl"
#include "key_walk.glsl"

shared float q_tile[kRows * kWidth];      // (kRows, E)
shared float weight_tile[kRows * kPitch];  // (kRows, kLocalSize): scores, then weights
shared float row_highest[kRows];
shared float row_fade[kRows];
shared uint key_tile[kSparse * (kLocalSize - 1) + 1];  // keys of a tile, with sparse terms
shared uint masked_tile;  // first position of the last tile in which a pair was masked, or ~0

float score[kRows];           // of this invocation's key
float total[kRows];           // weights of this invocation's keys
float sum[kRows * kColumns];  // of this invocation's value columns

void load_queries(uint base, uint first) {
  for (uint n = gl_LocalInvocationID.x; n < kRows * kWidth; n += kLocalSize) {
    const uint i = first + n / kWidth;
    q_tile[n] = i < p.queries ? q[base + i * p.q.row_stride + n % kWidth] : 0.0;
  }
}

// score[r] = q_r . k for the key that starts at `base`.
void dot_rows(uint base) {
  for (uint r = 0u; r < kRows; ++r) score[r] = 0.0;
  if (kQuads != 0u) {
    for (uint e = 0u; e < kWidth; e += 4u) {
      const vec4 k = kv_quads[(base + e) >> 2u];
      for (uint r = 0u; r < kRows; ++r) {
        const uint at = r * kWidth + e;
        score[r] += q_tile[at] * k.x + q_tile[at + 1u] * k.y + q_tile[at + 2u] * k.z +
                    q_tile[at + 3u] * k.w;
      }
    }
  } else {
    for (uint e = 0u; e < kWidth; ++e) {
      const float k = kv[base + e];
      for (uint r = 0u; r < kRows; ++r) score[r] += q_tile[r * kWidth + e] * k;
    }
  }
}

// Scale, terms and masks of the scores of a key (its index, position and entry); -inf where masked.
void finish_scores(KeyWalk walk, uvec2 place, uint first, uint tile, uvec3 key) {
  const bool exists = tile + gl_LocalInvocationID.x < walk.count;
  for (uint r = 0u; r < kRows; ++r) {
    const uint i = min(first + r, p.queries - 1u);
    float value = score[r] * p.scale + score_bias(p.terms, place.x, place.y, i, key.x);
    bool allowed = exists && score_allowed(p.terms, place.x, place.y, i, key.x);
    if (kSparse != 0u) {
      allowed = allowed && walk_counts(walk, p.terms, uvec3(place, i), key);
      value += walk_bias(walk, key.z);
    }
    if (!allowed) value = negative_infinity();
    if (exists && is_negative_infinity(value)) masked_tile = tile;
    score[r] = value;
  }
}

// row_highest and row_fade from the scores of all invocations.
void update_highest() {
  const uint lane = gl_LocalInvocationID.x;
#ifdef VKF_SUBGROUP
  for (uint r = 0u; r < kRows; ++r) {
    const float highest = subgroupMax(keep_max(kLowestFloat, score[r]));
    if (subgroupElect()) weight_tile[r * kPitch + gl_SubgroupID] = highest;
  }
  const uint count = gl_NumSubgroups;
#else
  for (uint r = 0u; r < kRows; ++r) weight_tile[r * kPitch + lane] = score[r];
  const uint count = kLocalSize;
#endif
  barrier();
  for (uint r = lane; r < kRows; r += kLocalSize) {
    const float before = row_highest[r];
    float highest = before;
    for (uint n = 0u; n < count; ++n) highest = keep_max(highest, weight_tile[r * kPitch + n]);
    row_highest[r] = highest;
    row_fade[r] = online_fade(before, highest, p.inverse_temperature);
  }
  barrier();
}

// sum += weights (kRows, count) times values (count, Ev), from key `begin` on or those of key_tile.
void add_values(uint base, uint begin, uint count, bool masked) {
  float value[kColumns];
  for (uint n = 0u; n < count; ++n) {
    const uint row = base + (kSparse != 0u ? key_tile[n] : begin + n) * p.v.row_stride;
    for (uint c = 0u; c < kColumns; ++c) {
      const uint column = min(gl_LocalInvocationID.x + c * kLocalSize, kValueWidth - 1u);
      value[c] = kv[row + column];
    }
    for (uint r = 0u; r < kRows; ++r) {
      const float weight = weight_tile[r * kPitch + n];
      if (masked && is_masked_weight(weight)) continue;
      for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] += weight * value[c];
    }
  }
}

void attend_tile(KeyWalk walk, uvec2 place, uint first, uint tile, uvec2 base) {
  const uint lane = gl_LocalInvocationID.x;
  const uint n = min(tile + lane, walk.count - 1u);
  uvec3 key = uvec3(walk.begin + n, n, 0u);
  if (kSparse != 0u) {
    key.x = walk_key(walk, n, key.z);
    key_tile[lane] = key.x;
  }
  dot_rows(base.x + key.x * p.k.row_stride);
  finish_scores(walk, place, first, tile, key);
  update_highest();
  for (uint r = 0u; r < kRows; ++r) {
    const float weight = online_weight(score[r], row_highest[r], p.inverse_temperature);
    const float fade = row_fade[r];
    weight_tile[r * kPitch + lane] = weight;
    total[r] = total[r] * fade + (is_masked_weight(weight) ? 0.0 : weight);
    for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] *= fade;
  }
  barrier();
  const uint count = min(kLocalSize, walk.count - tile);
  if (masked_tile == tile) {
    add_values(base.y, walk.begin + tile, count, true);
  } else {
    add_values(base.y, walk.begin + tile, count, false);
  }
  barrier();
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  if (unit >= p.batch * p.heads) return;
  const uvec2 place = uvec2(unit / p.heads, unit % p.heads);
  const uint first = gl_WorkGroupID.x * kRows;
  const uint kv_head = place.y / p.heads_per_kv;
  const uvec2 base = uvec2(
      p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride,
      p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride);
  load_queries(p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride, first);
  for (uint r = gl_LocalInvocationID.x; r < kRows; r += kLocalSize) row_highest[r] = kLowestFloat;
  if (gl_LocalInvocationID.x == 0u) masked_tile = ~0u;
  for (uint r = 0u; r < kRows; ++r) total[r] = 0.0;
  for (uint n = 0u; n < kRows * kColumns; ++n) sum[n] = 0.0;
  barrier();
  const uint last = min(first + kRows, p.queries) - 1u;
  KeyWalk walk;
  if (kSparse != 0u) {
    walk = key_walk(p.terms, place.x, place.y, first, last);
  } else {
    walk = interval_walk(key_range(p.terms, first, last));
  }
  for (uint tile = 0u; tile < walk.count; tile += kLocalSize) {
    attend_tile(walk, place, first, tile, base);
  }
  const uint out_base = p.y.offset + place.x * p.y.batch_stride + place.y * p.y.head_stride;
  for (uint r = 0u; r < kRows; ++r) {
    const float weights = workgroup_sum(total[r]);
    for (uint c = 0u; c < kColumns; ++c) {
      const uint column = gl_LocalInvocationID.x + c * kLocalSize;
      if (first + r < p.queries && column < kValueWidth) {
        y[out_base + (first + r) * p.y.row_stride + column] =
            online_result(sum[r * kColumns + c], weights);
      }
    }
  }
}
