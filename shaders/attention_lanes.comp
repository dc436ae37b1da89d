#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) v in one
//           pass over the keys (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words) -> Y (B, H,
//           T, Ev), each by its HeadLayout
// mapping:  a workgroup is one subgroup and owns kLocalSize * kQueries queries of one head; an
//           invocation owns kQueries of them, with q and y in registers; kKeys keys at a time are
//           loaded by all lanes together and handed round
// bounds:   T and S may be ragged; S that is no multiple of kKeys needs kKinds != 0; kRun > 1 needs
//           E, Ev and every layout in multiples of it
// requires: subgroup arithmetic, shuffle and vote, 64-bit integers, kLocalSize the subgroup size, 4
//           or 8; meant for software devices, where a load costs as much as many products
// variants: attention_lanes__f32_f32_f32_subgroup_int64 FEATURES subgroup int64 software
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_LANES_CONSTANTS)
const uint kSpan = kLocalSize * kRun;
const uint kChunks = (kWidth + kSpan - 1) / kSpan;
const uint kValueChunks = (kValueWidth + kSpan - 1) / kSpan;
const uint kDelayed = (kRelative & VKF_RELATIVE_KEYS) * kQueries * kLocalSize;  // distances

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer YQuads { vec4 y_quads[]; };
#include "lane_runs.glsl"

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY(kind) ((kKinds & (kind)) != 0u)
#define VKF_TERM_MAY_SPARSE VKF_TERM_MAY(VKF_KIND_SPARSE)
#include "key_range.glsl"
#include "score_terms.glsl"
#include "key_walk.glsl"
#include "score_shape.glsl"
#include "sink_terms.glsl"

float query[kQueries * kWidth];     // (kQueries, E)
float sum[kQueries * kValueWidth];  // (kQueries, Ev)
float run[kKeys * kRun];            // of this lane: a piece of a row of every key
float score[kKeys * kQueries];      // then the weights
uint allowed[kQueries];
float highest[kQueries];
float total[kQueries];
uint key_row[kKeys];  // where the rows of the keys begin in kv

// Lane n of a chunk has its elements n kRun ...; lanes beyond the row repeat its last run.
uint run_begin(uint chunk, uint width) {
  return min(chunk * kSpan + gl_SubgroupInvocationID * kRun, width - kRun);
}

void load_key_runs(uint chunk, uint width) {
  [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
    load_run(key_row[j] + run_begin(chunk, width));
    [[unroll]] for (uint i = 0u; i < kRun; ++i) run[j * kRun + i] = loaded[i];
  }
}

float offset_bias[kRelativeBiases ? kChunks * kRun : 1u];  // see lane_distances.glsl
float shared_part;

// score = q k^T for the rows of keys that begin at key_row.
void dot_keys() {
  [[unroll]] for (uint i = 0u; i < kKeys * kQueries; ++i) score[i] = 0.0;
  shared_part = 0.0;
  [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
    load_key_runs(c, kWidth);
    if (kRelativeBiases) {
      [[unroll]] for (uint i = 0u; i < kRun; ++i) shared_part += offset_bias[c * kRun + i] * run[i];
    }
    [[unroll]] for (uint n = 0u; n < kSpan; ++n) {
      const uint e = c * kSpan + n;
      if (e < kWidth) {
        [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
          const float element = subgroupShuffle(run[j * kRun + n % kRun], n / kRun);
          [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
            score[j * kQueries + r] = fma(query[r * kWidth + e], element, score[j * kQueries + r]);
          }
        }
      }
    }
  }
}

#include "lane_distances.glsl"

// Scores become weights; fade[r] is what the sums are still worth.
void update_weights(out float fade[kQueries]) {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    float now = highest[r];
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) now = keep_max(now, score[j * kQueries + r]);
    const float shrink = online_fade(highest[r], now, p.inverse_temperature);
    fade[r] = now > highest[r] ? shrink : 1.0;
    highest[r] = now;
    total[r] *= fade[r];
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      const uint at = j * kQueries + r;
      if (kKinds != 0u) {
        score[at] = online_weight(score[at], now, p.inverse_temperature);
        total[r] += is_masked_weight(score[at]) ? 0.0 : score[at];
      } else {
        score[at] = exp_nonpositive((score[at] - now) * p.inverse_temperature);
        total[r] += score[at];
      }
    }
  }
}

// sum = sum fade + weights times values. A masked weight counts as 0, and so do the values that it
// meets, which may be anything.
void add_values(float fade[kQueries]) {
  [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
    load_key_runs(c, kValueWidth);
    [[unroll]] for (uint m = 0u; m < kSpan; ++m) {
      const uint e = c * kSpan + m;
      if (e < kValueWidth) {
        [[unroll]] for (uint r = 0u; r < kQueries; ++r) sum[r * kValueWidth + e] *= fade[r];
        [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
          const float element = subgroupShuffle(run[j * kRun + m % kRun], m / kRun);
          [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
            const uint at = j * kQueries + r;
            const bool masked = kKinds != 0u && is_masked_weight(score[at]);
            const uint bits = floatBitsToUint(element) & (masked ? 0u : ~0u);
            sum[r * kValueWidth + e] =
                fma(masked ? 0.0 : score[at], uintBitsToFloat(bits), sum[r * kValueWidth + e]);
          }
        }
      }
    }
  }
}

// allowed[r] = bits of the keys that masks allow to query r, from key j to the end of j's word. It
// is false where none is allowed to anybody here.
bool load_allowed(uvec2 place, uint first, uint j) {
  bool any = false;
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint i = min(first + r * kLocalSize, p.queries - 1u);
    allowed[r] = allowed_bits(p.terms, place.x, place.y, i, j) >> (j & 31u);
    any = any || allowed[r] != 0u;
  }
  return subgroupAny(any);
}

// Scale, cap, terms and masks; -inf where masked. keys: index, position and entry of each.
void finish_scores(KeyWalk walk, uvec2 place, uint first, uint end, uvec3 keys[kKeys]) {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint i = min(first + r * kLocalSize, p.queries - 1u);
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      const uvec3 key = keys[j];
      float value = soft_capped(score[j * kQueries + r] * p.scale);
      bool seen = true;
      if (VKF_TERM_MAY_SPARSE) {
        seen = score_allowed(p.terms, place.x, place.y, i, key.x) &&
               walk_counts(walk, p.terms, uvec3(place, i), key);
        value += walk_bias(walk, key.z);
      } else if (kKinds != 0u) {
        seen = key.y < end && near_enough(p.terms, i, key.x) && (allowed[r] & (1u << j)) != 0u;
      }
      if (kKinds != 0u) value += score_bias(p.terms, place.x, place.y, i, key.x);
      score[j * kQueries + r] = seen ? value : negative_infinity();
    }
  }
}

void load_queries(uvec2 place, uint first) {
  const uint base = p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride;
  const float sink = sink_score(place.y);
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint row = base + min(first + r * kLocalSize, p.queries - 1u) * p.q.row_stride;
    highest[r] = sink_highest(sink);
    total[r] = sink_total(sink);
    [[unroll]] for (uint e = 0u; e < kWidth; e += kRun) {
      load_query_run(row + e);
      [[unroll]] for (uint i = 0u; i < kRun; ++i) query[r * kWidth + e + i] = loaded[i];
    }
    [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) sum[r * kValueWidth + e] = 0.0;
  }
}

void store_results(uint base, uint first) {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const uint i = first + r * kLocalSize;
    const uint row = base + i * p.y.row_stride;
    const float share = online_result(1.0, total[r]);
    if (i < p.queries) {
      if (kRun == 1u) {
        [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) {
          y[row + e] = floatBitsToUint(share) == 0u ? 0.0 : sum[r * kValueWidth + e] * share;
        }
      } else {
        [[unroll]] for (uint e = 0u; e < kValueWidth; e += 4u) {
          const uint at = r * kValueWidth + e;
          const vec4 quad = vec4(sum[at], sum[at + 1u], sum[at + 2u], sum[at + 3u]);
          y_quads[(row + e) >> 2u] = floatBitsToUint(share) == 0u ? vec4(0.0) : quad * share;
        }
      }
    }
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint group_first = gl_WorkGroupID.x * kLocalSize * kQueries;
  const uint first = group_first + gl_SubgroupInvocationID;
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
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  load_queries(place, first);
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) allowed[r] = ~0u;
  if (kRelativeBiases) add_biases(place.y);
  // Blocks of keys begin at multiples of kKeys, wherever the group's first key is.
  const uint begin = walk.begin & ~(kKeys - 1u);
  const uint end = walk.count == 0u ? 0u : walk.count + (walk.begin - begin);
  const int origin = int(group_first) + p.terms.causal_offset;
  // Before the first key come the distances that are taken later.
  for (int n = kRelative != 0u ? 1 - int(kDelayed) : 0; n < int(end); n += int(kKeys)) {
    if (kRelative != 0u) {
      push_distance(place, int(begin) + n - origin);
      if (n < 0) continue;
      if (VKF_TERM_MAY(VKF_KIND_MASKS)) load_allowed(place, first, begin + uint(n));
    } else if (VKF_TERM_MAY(VKF_KIND_MASKS) && !VKF_TERM_MAY_SPARSE) {
      // Keys that nobody here sees are skipped word by word.
      bool hidden = true;
      while (hidden && n < int(end)) {
        hidden = !load_allowed(place, first, begin + uint(n));
        if (hidden) n += int(32u - ((begin + uint(n)) & 31u));
      }
      if (n >= int(end)) break;
    }
    uvec3 keys[kKeys];
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      keys[j] = uvec3(min(begin + uint(n) + j, begin + end - 1u), uint(n) + j, 0u);
      if (VKF_TERM_MAY_SPARSE) keys[j].x = walk_key(walk, uint(n) + j, keys[j].z);
      key_row[j] = k_base + keys[j].x * p.k.row_stride;
    }
    dot_keys();
    if (kRelative != 0u) add_distances();
    if (kRelativeProducts) add_products(place, first, keys);
    finish_scores(walk, place, first, end, keys);
    float fade[kQueries];
    update_weights(fade);
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      key_row[j] = v_base + keys[j].x * p.v.row_stride;
    }
    add_values(fade);
  }
  store_results(out_base, first);
}
