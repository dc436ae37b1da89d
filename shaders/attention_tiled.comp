#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) v in one
//           pass over the keys (online softmax, Milakov and Gimelshein 2018; in tiles, Dao et al.
//           2022)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words) -> Y (B, H,
//           T, Ev), each by its HeadLayout
// mapping:  a workgroup owns kRows queries of one head; an invocation first one key of a tile, then
//           every kLocalSize-th value column
// bounds:   T, S, E and Ev may be ragged; E * kRows floats fit shared memory; kQuads needs rows of
//           k that start at multiples of 4
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant; the literal variant
//           has kQuads, no more value columns than invocations, subgroups of 4 with quad
//           operations, and neither sparse terms, relative positions nor counting
// variants: attention_tiled__f32_f32_f32
//           attention_tiled__f32_f32_f32_subgroup FEATURES subgroup
//           attention_literal__f32_f32_f32_subgroup UNROLLED FEATURES subgroup software DEFINES VKF_LITERAL=1
#extension GL_EXT_control_flow_attributes : require
#include "attention.h"
layout(local_size_x_id = 0) in;
#if VKF_LITERAL
VKF_CONSTANTS(VKF_ATTENTION_TILED_HEADS)
// Some compilers neither unroll a loop nor take an array apart whose size is specialized.
const uint kRows = 8u, kColumns = 1u, kQuads = 1u, kSparse = 0u, kRelative = 0u, kCounting = 0u;
#else
VKF_CONSTANTS(VKF_ATTENTION_TILED_CONSTANTS)
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;  // of one invocation
#endif
// Fours of weights, and one more to spread rows over banks; distances need columns for the rows
// above.
const uint kPitch = ((kLocalSize + (kRelative & VKF_RELATIVE_KEYS) * kRows) / 4 + 1) * 4;

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

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY_SPARSE (kSparse != 0u)
#include "key_range.glsl"
#include "score_terms.glsl"
#include "key_walk.glsl"
#include "score_shape.glsl"
#include "sink_terms.glsl"

shared float q_tile[kRows * kWidth];       // (kRows, E)
shared float weight_tile[kRows * kPitch];  // (kRows, kLocalSize): scores, then weights
shared float row_highest[kRows];
shared float row_fade[kRows];
shared uint key_tile[kSparse * (kLocalSize - 1) + 1];  // keys of a tile, with sparse terms
shared uint masked_tile;  // first position of the last tile in which a pair was masked, or ~0

float score[kRows];           // of this invocation's key
float total[kRows];           // weights of this invocation's keys
float sum[kRows * kColumns];  // of this invocation's value columns
float carried[kRows];         // q . r for this invocation's distance in the last tile

#if VKF_LITERAL
#include "quad_rows.glsl"
#define VKF_UNROLL [[unroll]]
#else
uint row_of(uint r) { return r; }
#define VKF_UNROLL
#endif

void load_queries(uint base, uint first) {
  for (uint n = gl_LocalInvocationID.x; n < kRows * kWidth; n += kLocalSize) {
    const uint i = first + n / kWidth;
    q_tile[n] = i < p.queries ? q[base + i * p.q.row_stride + n % kWidth] : 0.0;
  }
}

// score[r] += (q_r + bias) . k for the key, or row of positions, that starts at `base`.
void dot_rows(uint base, uint bias) {
  float shared_part = 0.0;
  if (kQuads != 0u) {
    for (uint e = 0u; e < kWidth; e += 4u) {
      const vec4 k = kv_quads[(base + e) >> 2u];
#if VKF_LITERAL
      VKF_ADD_ROWS(score, k, q_tile, kWidth, e)
#else
      if (kRelativeBiases) shared_part += dot(kv_quads[(bias + e) >> 2u], k);
      for (uint r = 0u; r < kRows; ++r) {
        const uint at = r * kWidth + e;
        score[r] += q_tile[at] * k.x + q_tile[at + 1u] * k.y + q_tile[at + 2u] * k.z +
                    q_tile[at + 3u] * k.w;
      }
#endif
    }
  } else {
    for (uint e = 0u; e < kWidth; ++e) {
      const float k = kv[base + e];
      if (kRelativeBiases) shared_part += kv[bias + e] * k;
      for (uint r = 0u; r < kRows; ++r) score[r] += q_tile[r * kWidth + e] * k;
    }
  }
  if (kRelativeBiases) {
    for (uint r = 0u; r < kRows; ++r) score[r] += shared_part;
  }
}

#include "tile_distances.glsl"

// Scale, terms and masks of the scores of a key (its index, position and entry); -inf where masked.
void finish_scores(KeyWalk walk, uvec2 place, uint first, uint tile, uvec3 key) {
  const bool exists = tile + gl_LocalInvocationID.x < walk.count;
  bool masked = false;
  VKF_UNROLL for (uint r = 0u; r < kRows; ++r) {
    const uint i = min(first + row_of(r), p.queries - 1u);
    float value = soft_capped(score[r] * p.scale) + score_bias(p.terms, place.x, place.y, i, key.x);
    bool allowed = exists && score_allowed(p.terms, place.x, place.y, i, key.x);
    if (kSparse != 0u) {
      allowed = allowed && walk_counts(walk, p.terms, uvec3(place, i), key);
      value += walk_bias(walk, key.z);
    }
    if (!allowed) value = negative_infinity();
    masked = masked || (exists && is_negative_infinity(value));
    score[r] = value;
  }
  if (masked) atomicExchange(masked_tile, tile);  // plain stores of several invocations would race
}

// row_highest and row_fade from the scores of all invocations.
void update_highest() {
  const uint lane = gl_LocalInvocationID.x;
#if VKF_LITERAL
  store_highest();
  const uint count = gl_NumSubgroups;
#elif defined(VKF_SUBGROUP)
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

// Weights of a row's keys, of all invocations; into `total`. The rows take turns inside the loop
// over subgroups: a loop with another in it is not unrolled, and its arrays would go to memory.
void add_totals() {
#if VKF_LITERAL
  store_totals();
  VKF_UNROLL for (uint r = 0u; r < kRows; ++r) total[r] = row_fade[row_of(r)];
#elif defined(VKF_SUBGROUP)
  for (uint r = 0u; r < kRows; ++r) {
    const float added = subgroupAdd(total[r]);
    if (subgroupElect()) weight_tile[r * kPitch + gl_SubgroupID] = added;
    total[r] = 0.0;
  }
  barrier();
  for (uint n = 0u; n < gl_NumSubgroups; ++n) {
    for (uint r = 0u; r < kRows; ++r) total[r] += weight_tile[r * kPitch + n];
  }
#else
  for (uint r = 0u; r < kRows; ++r) total[r] = workgroup_sum(total[r]);
#endif
}

// Of the values of key `begin + n`, or of key_tile[n], the c-th that is this invocation's.
float value_at(uint base, uint begin, uint n, uint c) {
  const uint row = base + (kSparse != 0u ? key_tile[n] : begin + n) * p.v.row_stride;
  return kv[row + min(gl_LocalInvocationID.x + c * kLocalSize, kValueWidth - 1u)];
}

// sum += weights (kRows, count) times values (count, Ev), from key `begin` on or those of key_tile.
// Masked values may be NaN, and their weights of 0 would not hide it: they are passed over.
void add_values(uint base, uint begin, uint count, bool masked) {
  // Four keys at a time, so that their weights are one load for a row.
  float value[4u * kColumns];
  const uint fours = masked ? 0u : count / 4u;
  for (uint four = 0u; four < fours; ++four) {
    VKF_UNROLL for (uint i = 0u; i < 4u; ++i) {
      VKF_UNROLL for (uint c = 0u; c < kColumns; ++c) {
        value[i * kColumns + c] = value_at(base, begin, 4u * four + i, c);
      }
    }
#if VKF_LITERAL
    VKF_ADD_ROWS(sum, value, weight_tile, kPitch, 4u * four)
#else
    for (uint r = 0u; r < kRows; ++r) {
      const uint at = r * kPitch + 4u * four;
      const vec4 weight =
          vec4(weight_tile[at], weight_tile[at + 1u], weight_tile[at + 2u], weight_tile[at + 3u]);
      for (uint i = 0u; i < 4u; ++i) {
        for (uint c = 0u; c < kColumns; ++c) {
          sum[r * kColumns + c] += weight[i] * value[i * kColumns + c];
        }
      }
    }
#endif
  }
  for (uint n = 4u * fours; n < count; ++n) {
    VKF_UNROLL for (uint c = 0u; c < kColumns; ++c) value[c] = value_at(base, begin, n, c);
    VKF_UNROLL for (uint r = 0u; r < kRows; ++r) {
      const float weight = weight_tile[row_of(r) * kPitch + n];
      if (!masked || !is_masked_weight(weight)) {
        VKF_UNROLL for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] += weight * value[c];
      }
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
  const int distance = int(key.x) - int(first) - p.terms.causal_offset;  // from query 0
  if (kRelative == 0u) {
    VKF_UNROLL for (uint r = 0u; r < kRows; ++r) score[r] = 0.0;
  } else if (kSparse != 0u) {
    dot_apart(place.y, distance);
  } else {
    // Not of `key`: the invocations after the last key compute the distances that follow.
    dot_shifted(place.y, int(walk.begin + tile + lane) - int(first) - p.terms.causal_offset);
  }
  dot_rows(base.x + key.x * p.k.row_stride, relative_bias(p.relative, VKF_TERM_HEADS, place.y));
  if (kRelativeQueries) {
    dot_relative_queries(base.x + key.x * p.k.row_stride, place.y, distance);
  }
  if (kRelativeProducts) add_relative_products(place, key.x, distance);
  finish_scores(walk, place, first, tile, key);
  update_highest();
  VKF_UNROLL for (uint r = 0u; r < kRows; ++r) {
    const float weight = online_weight(score[r], row_highest[row_of(r)], p.inverse_temperature);
    const float fade = row_fade[row_of(r)];
    weight_tile[row_of(r) * kPitch + lane] = weight;
    total[r] = total[r] * fade + (is_masked_weight(weight) ? 0.0 : weight);
    VKF_UNROLL for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] *= fade;
  }
  barrier();
  const uint count = min(kLocalSize, walk.count - tile);
  add_values(base.y, walk.begin + tile, count, masked_tile == tile);
  if (kRelativeValues) {
    add_relative_values(place.y, walk.begin + tile, count, int(first) + p.terms.causal_offset);
  }
  barrier();
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = gl_WorkGroupID.x * kRows;
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uvec2 base = uvec2(p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride,
                           p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride);
  load_queries(p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride, first);
  const float sink = sink_score(place.y);
  for (uint r = gl_LocalInvocationID.x; r < kRows; r += kLocalSize) {
    row_highest[r] = sink_highest(sink);
  }
  if (gl_LocalInvocationID.x == 0u) masked_tile = ~0u;
  VKF_UNROLL for (uint r = 0u; r < kRows; ++r) {
    total[r] = gl_LocalInvocationID.x == 0u ? sink_total(sink) : 0.0;
  }
  VKF_UNROLL for (uint n = 0u; n < kRows * kColumns; ++n) sum[n] = 0.0;
  barrier();
  const uint last = min(first + kRows, p.queries) - 1u;
  KeyWalk walk;
  if (kSparse != 0u) {
    walk = key_walk(p.terms, place.x, place.y, first, last);
  } else {
    walk = interval_walk(key_range(p.terms, first, last));
  }
  const uint out_base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  if (kCounting != 0u) {
    for (uint i = first + gl_LocalInvocationID.x; i <= last; i += kLocalSize)
      y[out_base + i * p.y.row_stride] = float(walk.count);
    return;
  }
  if (kRelative != 0u && kSparse == 0u) {
    const int key = int(walk.begin) - int(kLocalSize) + int(gl_LocalInvocationID.x);
    dot_distance(place.y, key - int(first) - p.terms.causal_offset);
    for (uint r = 0u; r < kRows; ++r) carried[r] = score[r];
  }
  for (uint tile = 0u; tile < walk.count; tile += kLocalSize) {
    attend_tile(walk, place, first, tile, base);
  }
  add_totals();
  VKF_UNROLL for (uint r = 0u; r < kRows; ++r) {
    const uint i = first + row_of(r);
    VKF_UNROLL for (uint c = 0u; c < kColumns; ++c) {
      const uint column = gl_LocalInvocationID.x + c * kLocalSize;
      if (i < p.queries && column < kValueWidth) {
        y[out_base + i * p.y.row_stride + column] = online_result(sum[r * kColumns + c], total[r]);
      }
    }
  }
}
