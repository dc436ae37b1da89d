#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
// computes: y = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) v in one pass over the keys (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words) -> Y (B, H, T, Ev), each by its HeadLayout
// mapping:  a workgroup is one subgroup and owns kLocalSize * kQueries queries of one head; an invocation owns kQueries of them, with q and y in registers; k and v are loaded once by all lanes and broadcast
// bounds:   T, S, E and Ev may be ragged; kLocalSize is the subgroup size, 4 or 8
// requires: subgroup arithmetic and ballot; meant for software devices, where a load costs as much as many products
#include "attention.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 8;
layout(constant_id = 1) const uint kQueries = 2;      // of one invocation
layout(constant_id = 2) const uint kWidth = 64;       // E
layout(constant_id = 3) const uint kValueWidth = 64;  // Ev
layout(constant_id = 4) const uint kMayMask = 1;      // 0: there are no terms; 2: sparse ones too
layout(constant_id = 5) const uint kSoftcap = 0;      // bits of a float; 0: none
layout(constant_id = 6) const uint kRelative = 0;     // VKF_RELATIVE_*, without values and sparse terms
layout(constant_id = 7) const uint kCounting = 0;     // 1: y (B, H, T) is how many keys are visited
const uint kChunks = (kWidth + kLocalSize - 1) / kLocalSize;
const uint kValueChunks = (kValueWidth + kLocalSize - 1) / kLocalSize;
const uint kDelayed = (kRelative & VKF_RELATIVE_KEYS) * kQueries * kLocalSize;  // products of a query

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY_SPARSE (kMayMask > 1u)
#include "key_range.glsl"
#include "score_terms.glsl"
#include "key_walk.glsl"
#include "score_shape.glsl"

float query[kQueries * kChunks * kLocalSize];     // (kQueries, E), zeros beyond E
float sum[kQueries * kValueChunks * kLocalSize];  // (kQueries, Ev)
float score[kQueries];
float weight[kQueries];
float highest[kQueries];
float total[kQueries];
float offset_bias[kChunks];  // of positions less that of the content: this lane's columns, zeros beyond E
float delayed[kQueries * kDelayed + 1];  // (kQueries, kDelayed): q . r of the last distances, newest first

// A broadcast takes a literal lane, so the lanes are written out.
#define VKF_EACH_LANE(F) \
  F(0u) F(1u) F(2u) F(3u) \
  if (kLocalSize > 4u) { \
    F(4u) F(5u) F(6u) F(7u) \
  }

void dot_key(uint base) {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) score[r] = 0.0;
  [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
    const float k = kv[base + min(c * kLocalSize + gl_LocalInvocationID.x, kWidth - 1u)];
#define VKF_DOT(lane) \
  if (c * kLocalSize + lane < kWidth) { \
    const float element = subgroupBroadcast(k, lane); \
    [[unroll]] for (uint r = 0u; r < kQueries; ++r) { \
      score[r] += query[(r * kChunks + c) * kLocalSize + lane] * element; \
    } \
  }
    VKF_EACH_LANE(VKF_DOT)
  }
}

// delayed[r] begins with (q_r + c) . r_d for the distance from the group's first query to key j. All
// lanes multiply one row: the query n places behind the first takes that product n keys later.
void push_distance(uvec2 place, int distance) {
  const uint base = relative_key(p.relative, VKF_TERM_HEADS, place.y, distance);
  dot_key(base);
  float shared_part = 0.0;
  if (kRelativeBiases) {
    [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
      shared_part += offset_bias[c] * kv[base + min(c * kLocalSize + gl_LocalInvocationID.x, kWidth - 1u)];
    }
    shared_part = subgroupAdd(shared_part);
  }
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    [[unroll]] for (uint n = 1u; n < kDelayed; ++n) {
      delayed[(r + 1u) * kDelayed - n] = delayed[(r + 1u) * kDelayed - n - 1u];
    }
    delayed[r * kDelayed] = score[r] + shared_part;
  }
}

// score[r] += the product that belongs to the key of the last pushed distance.
void add_distances() {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    float value = 0.0;
    [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
      value = n == gl_LocalInvocationID.x ? delayed[r * kDelayed + r * kLocalSize + n] : value;
    }
    score[r] += value;
  }
}

// Adds the bias of the content to the queries and keeps what that of positions has more.
void add_biases(uint h) {
  const uint bias = relative_bias(p.relative, VKF_TERM_HEADS, h);
  [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
    const uint e = min(c * kLocalSize + gl_LocalInvocationID.x, kWidth - 1u);
    const float more = kv[bias + VKF_TERM_HEADS * kWidth + e] - kv[bias + e];
    offset_bias[c] = c * kLocalSize + gl_LocalInvocationID.x < kWidth ? more : 0.0;
    [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
      const uint column = c * kLocalSize + n;
      [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
        if (column < kWidth) query[r * kChunks * kLocalSize + column] += kv[bias + column];
      }
    }
  }
}

void add_value(uint base) {
  [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
    const float v = kv[base + min(c * kLocalSize + gl_LocalInvocationID.x, kValueWidth - 1u)];
#define VKF_ADD(lane) \
  if (c * kLocalSize + lane < kValueWidth) { \
    const float element = subgroupBroadcast(v, lane); \
    [[unroll]] for (uint r = 0u; r < kQueries; ++r) { \
      const float product = weight[r] * element; \
      const bool masked = kMayMask != 0u && is_masked_weight(weight[r]); \
      sum[(r * kValueChunks + c) * kLocalSize + lane] += masked ? 0.0 : product; \
    } \
  }
    VKF_EACH_LANE(VKF_ADD)
  }
}

// A score with its terms, -inf where masked; key: its index, position and entry.
float finish_score(KeyWalk walk, uvec2 place, uint i, uvec3 key, float value) {
  const uint j = key.x;
  value += score_bias(p.terms, place.x, place.y, i, j);
  bool allowed = score_allowed(p.terms, place.x, place.y, i, j);
  if (VKF_TERM_MAY_SPARSE) {
    allowed = allowed && walk_counts(walk, p.terms, uvec3(place, i), key);
    value += walk_bias(walk, key.z);
  }
  return allowed ? value : negative_infinity();
}

// weight[r] of a key (its index, position and entry) from score[r]; fades the sums of the queries
// whose maximum grows.
void update_weights(KeyWalk walk, uvec2 place, uint first, uvec3 key) {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    float value = soft_capped(score[r] * p.scale);
    if (kMayMask != 0u) {
      const uint i = min(first + r * kLocalSize, p.queries - 1u);
      value = finish_score(walk, place, i, key, value);
    }
    const float now = keep_max(highest[r], value);
    if (now > highest[r]) {
      const float fade = online_fade(highest[r], now, p.inverse_temperature);
      highest[r] = now;
      total[r] *= fade;
      [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
        [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
          sum[(r * kValueChunks + c) * kLocalSize + n] *= fade;
        }
      }
    }
    weight[r] = online_weight(value, now, p.inverse_temperature);
    const bool masked = is_masked_weight(weight[r]);
    if (kMayMask == 0u && masked) weight[r] = 0.0;
    total[r] += masked ? 0.0 : weight[r];
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint group_first = gl_WorkGroupID.x * kLocalSize * kQueries;
  const uint first = group_first + gl_LocalInvocationID.x;
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  const uint q_base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride;
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint row = q_base + min(first + r * kLocalSize, p.queries - 1u) * p.q.row_stride;
    highest[r] = kLowestFloat;
    total[r] = 0.0;
    [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
      [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
        const uint e = c * kLocalSize + n;
        query[r * kChunks * kLocalSize + e] = e < kWidth ? q[row + e] : 0.0;
      }
    }
    [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
      [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
        sum[(r * kValueChunks + c) * kLocalSize + n] = 0.0;
      }
    }
  }
  const uint last = min(group_first + kLocalSize * kQueries, p.queries) - 1u;
  KeyWalk walk;
  if (VKF_TERM_MAY_SPARSE) {
    walk = key_walk(p.terms, place.x, place.y, group_first, last);
  } else {
    walk = interval_walk(key_range(p.terms, group_first, last));
  }
  const uint out_base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  if (kCounting != 0u) {
    for (uint i = first; i <= last; i += kLocalSize) {
      y[out_base + i * p.y.row_stride] = float(walk.count);
    }
    return;
  }
  const int origin = int(group_first) + p.terms.causal_offset;
  if (kRelative != 0u) {
    if (kRelativeBiases) add_biases(place.y);
  }
  // Before the first key come the distances that are taken later.
  for (uint n = kRelative != 0u ? 1u - kDelayed : 0u; n != walk.count; ++n) {
    uvec3 key = uvec3(walk.begin + n, n, 0u);
    if (VKF_TERM_MAY_SPARSE) key.x = walk_key(walk, n, key.z);
    if (kRelative != 0u) {
      push_distance(place, int(key.x) - origin);
      if (int(n) < 0) continue;
    }
    dot_key(k_base + key.x * p.k.row_stride);
    if (kRelative != 0u) add_distances();
    update_weights(walk, place, first, key);
    add_value(v_base + key.x * p.v.row_stride);
  }
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint i = first + r * kLocalSize;
    if (i >= p.queries) continue;
    [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
      [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
        const uint e = c * kLocalSize + n;
        if (e < kValueWidth) {
          y[out_base + i * p.y.row_stride + e] =
              online_result(sum[(r * kValueChunks + c) * kLocalSize + n], total[r]);
        }
      }
    }
  }
}
