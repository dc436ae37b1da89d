#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax((softcap(scale q k^T) + alibi + bias) / temperature) v in one pass over the
//           keys (online softmax, Milakov and Gimelshein 2018; in tiles, Dao et al. 2022)
// shapes:   Q (B, H, T, E), Kv: k (B, Hkv, S, E) and v (B, Hkv, S, Ev), Terms (words)
//           -> Y (B, H, T, Ev), each by its HeadLayout
// mapping:  a workgroup owns kRows queries of one head and visits tiles of keys 32 n ... 32 n + 31;
//           an invocation has kTileM of the queries, of them 4 keys of a tile and then every eighth
//           four of value columns, all in registers; keys and values come through shared memory
// bounds:   T, S, E and Ev may be ragged; kKinds has VKF_KIND_NEAR with causal and windows; kQuads
//           needs E, Ev and every layout in multiples of 4
// requires: kLocalSize is a multiple of 8, kStageKeys divides 32; shared memory as in
//           attention_blocks.cpp
// variants: attention_blocks__f32_f32_f32
#extension GL_EXT_control_flow_attributes : require
#include "attention.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_BLOCKS_CONSTANTS)
const uint kRelative = 0u;

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 0) readonly buffer Q4 { vec4 q4[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 1) readonly buffer Kv4 { vec4 kv4[]; };
layout(binding = 2) readonly buffer Terms { uint terms[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };

#define VKF_TERM_HEADS VKF_HEADS(p.heads)
#define VKF_TERM_QUERIES p.queries
#define VKF_TERM_KEYS p.keys
#define VKF_TERM_TEMPERATURE (1.0 / p.inverse_temperature)
#define VKF_TERM_MAY(kind) ((kKinds & (kind)) != 0u)
#define VKF_TERM_MAY_SPARSE false
#include "key_range.glsl"
#include "score_terms.glsl"
#include "score_shape.glsl"

const uint kKeys = 32u;            // of a tile
const uint kKeyLanes = kKeys / 4u;  // invocations that share a query
const uint kRowLanes = kLocalSize / kKeyLanes;
const uint kRows = kRowLanes * kTileM;
const uint kDepth = (kWidth + 3) / 4;                                     // fours of E
const uint kColumns = ((kValueWidth + 3) / 4 + kKeyLanes - 1) / kKeyLanes;  // fours of Ev, of a lane
// Rows of shared memory in vectors; an odd number of them begins in other banks than its neighbours.
const uint kPitchQ = kDepth | 1u;
const uint kPitchK = kStageDepth | 1u;
const uint kPitchV = kColumns * kKeyLanes;
const uint kPitchWeights = kKeyLanes + 1u;
const uint kStageK = kKeys * kPitchK;
const uint kStageV = kStageKeys * kPitchV;
shared vec4 q_tile[kRows * kPitchQ];
shared vec4 stage[kStageK > kStageV ? kStageK : kStageV];  // of keys, then of their values
shared vec4 weights[kRows * kPitchWeights];  // of four neighbouring keys each
shared vec4 of_lanes[kRows * 2u];  // the highest scores of a row's lanes; at the end their totals
shared uint wild_tile;  // the last tile, from 1 on, in which a value is infinite or NaN

float highest[kTileM];
float total[kTileM];  // of this invocation's keys
vec4 sum[kTileM * kColumns];

// A masked pair weighs -0, which no exponential is: nothing to a sum, and yet told from a weight.
const uint kMaskedBits = 0x80000000u;

uint key_lane() { return gl_LocalInvocationID.x % kKeyLanes; }
uint row_of(uint m) { return gl_LocalInvocationID.x / kKeyLanes + m * kRowLanes; }

// Fours of a row of Kv that begins at `row`; zeros from element `width` on, which are not loaded:
// memory there may hold a NaN.
vec4 load_kv(uint row, uint four, uint width) {
  if (kQuads != 0u) return kv4[(row >> 2u) + four];
  vec4 v = vec4(0.0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (4u * four + e < width) v[e] = kv[row + 4u * four + e];
  }
  return v;
}

void load_queries(uint base, uint first) {
  for (uint n = gl_LocalInvocationID.x; n < kRows * kDepth; n += kLocalSize) {
    const uint i = n / kDepth, four = n % kDepth;
    const uint row = base + (first + i) * p.q.row_stride;
    vec4 v = vec4(0.0);
    if (first + i < p.queries) {
      if (kQuads != 0u) {
        v = q4[(row >> 2u) + four];
      } else {
        [[unroll]] for (uint e = 0u; e < 4u; ++e) {
          if (4u * four + e < kWidth) v[e] = q[row + 4u * four + e];
        }
      }
    }
    q_tile[i * kPitchQ + four] = v;
  }
}

// Fours [begin, begin + kStageDepth) of the keys of a tile, key 4 n + i at row 8 i + n: so lanes
// that read four neighbouring keys each read neighbouring rows.
void stage_keys(uint base, uint tile, uint begin) {
  const uint depth = min(kStageDepth, kDepth - begin);
  for (uint n = gl_LocalInvocationID.x; n < kKeys * kStageDepth; n += kLocalSize) {
    const uint i = n / kStageDepth, four = n % kStageDepth;
    const uint key = tile * kKeys + i;
    if (four >= depth) continue;
    vec4 v = vec4(0.0);
    if (key < p.keys) v = load_kv(base + key * p.k.row_stride, begin + four, kWidth);
    stage[(i % 4u * kKeyLanes + i / 4u) * kPitchK + four] = v;
  }
}

// Values of the keys [begin, begin + kStageKeys) of a tile.
void stage_values(uint base, uint tile, uint begin) {
  const uint depth = (kValueWidth + 3u) / 4u;
  uint top = 0u;
  for (uint n = gl_LocalInvocationID.x; n < kStageV; n += kLocalSize) {
    const uint four = n % kPitchV;
    const uint key = tile * kKeys + begin + n / kPitchV;
    vec4 v = vec4(0.0);
    if (key < p.keys && four < depth) v = load_kv(base + key * p.v.row_stride, four, kValueWidth);
    const uvec4 bits = floatBitsToUint(v) & 0x7fffffffu;
    top = max(max(top, max(bits.x, bits.y)), max(bits.z, bits.w));
    stage[n] = v;
  }
  if (top >= 0x7f800000u) atomicMax(wild_tile, tile + 1u);
}

// score = q k^T of this invocation's queries and keys.
void multiply_keys(uint begin, inout vec4 score[kTileM]) {
  const uint depth = min(kStageDepth, kDepth - begin);
  [[dont_unroll]] for (uint e = 0u; e < depth; ++e) {
    vec4 k[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      k[i] = stage[(i * kKeyLanes + key_lane()) * kPitchK + e];
    }
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      const vec4 x = q_tile[row_of(m) * kPitchQ + begin + e];
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        score[m][i] = fma(x.x, k[i].x, score[m][i]);
        score[m][i] = fma(x.y, k[i].y, score[m][i]);
        score[m][i] = fma(x.z, k[i].z, score[m][i]);
        score[m][i] = fma(x.w, k[i].w, score[m][i]);
      }
    }
  }
}

// Scale, terms and masks; -inf where a pair is masked or its key does not exist.
vec4 finished(vec4 products, uvec2 place, uint i, uint tile) {
  const uint key = tile * kKeys + 4u * key_lane();
  vec4 score;
  const uint bits =
      VKF_TERM_MAY(VKF_KIND_KEY_MASK | VKF_KIND_MASK) && key < p.keys
          ? allowed_bits(p.terms, place.x, place.y, i, key) >> (4u * key_lane())
          : ~0u;
  [[unroll]] for (uint n = 0u; n < 4u; ++n) {
    score[n] = soft_capped(products[n] * p.scale);
    bool allowed = key + n < p.keys;
    if (VKF_TERM_MAY(VKF_KIND_BIAS | VKF_KIND_DISTANCE) && allowed) {
      score[n] += score_bias(p.terms, place.x, place.y, i, key + n);
    }
    allowed = allowed && (bits & (1u << n)) != 0u && near_enough(p.terms, i, key + n);
    if (!allowed) score[n] = negative_infinity();
  }
  return score;
}

float highest_of(float now, vec4 v) {
  return keep_max(keep_max(keep_max(keep_max(now, v.x), v.y), v.z), v.w);
}

float weight_of(float score, float now) {
  const float weight = exp_nonpositive((score - now) * p.inverse_temperature);
  return is_negative_infinity(score) ? uintBitsToFloat(kMaskedBits) : weight;
}

// Scores to weights, by the highest scores of all lanes; sums and totals to what they are worth now.
void weigh(vec4 score[kTileM]) {
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    const uint row = row_of(m);
    const float now =
        highest_of(highest_of(highest[m], of_lanes[2u * row]), of_lanes[2u * row + 1u]);
    const float fade = online_fade(highest[m], now, p.inverse_temperature);
    highest[m] = now;
    vec4 weight;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) weight[i] = weight_of(score[m][i], now);
    weights[row * kPitchWeights + key_lane()] = weight;
    total[m] = total[m] * fade + ((weight.x + weight.y) + (weight.z + weight.w));
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) sum[m * kColumns + c] *= fade;
  }
}

// sum += weights times the values of the keys [begin, begin + kStageKeys) of a tile.
void add_values(uint begin) {
  [[dont_unroll]] for (uint n = 0u; n < kStageKeys; n += 4u) {
    vec4 weight[kTileM];
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      weight[m] = weights[row_of(m) * kPitchWeights + (begin + n) / 4u];
    }
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      vec4 value[4];
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        value[i] = stage[(n + i) * kPitchV + c * kKeyLanes + key_lane()];
      }
      [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          const uint at = m * kColumns + c;
          sum[at] = fma(vec4(weight[m][i]), value[i], sum[at]);
        }
      }
    }
  }
}

// The same where values are infinite or NaN: 0 times one would be NaN, so masked pairs are left out.
void add_wild_values(uint begin) {
  [[dont_unroll]] for (uint n = 0u; n < kStageKeys; ++n) {
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      const uint key = begin + n;
      const float weight = weights[row_of(m) * kPitchWeights + key / 4u][key % 4u];
      if (floatBitsToUint(weight) == kMaskedBits) continue;
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        const vec4 value = stage[n * kPitchV + c * kKeyLanes + key_lane()];
        sum[m * kColumns + c] = fma(vec4(weight), value, sum[m * kColumns + c]);
      }
    }
  }
}

void write_row(uint base, uint i, uint m) {
  const float all = dot(of_lanes[2u * row_of(m)], vec4(1.0)) +
                    dot(of_lanes[2u * row_of(m) + 1u], vec4(1.0));
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
    const uint column = 4u * (c * kKeyLanes + key_lane());
    const uint at = base + i * p.y.row_stride + column;
    vec4 result;
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      result[e] = online_result(sum[m * kColumns + c][e], all);
    }
    if (kQuads != 0u) {
      if (column < kValueWidth) y4[at >> 2u] = result;
      continue;
    }
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      if (column + e < kValueWidth) y[at + e] = result[e];
    }
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = gl_WorkGroupID.x * kRows;
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  load_queries(p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride, first);
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    highest[m] = kLowestFloat;
    total[m] = 0.0;
  }
  [[unroll]] for (uint n = 0u; n < kTileM * kColumns; ++n) sum[n] = vec4(0.0);
  if (gl_LocalInvocationID.x == 0u) wild_tile = 0u;
  const uint last = min(first + kRows, p.queries) - 1u;
  const uvec2 keys = key_range(p.terms, first, last);
  for (uint tile = keys.x / kKeys; keys.x < keys.y && tile * kKeys < keys.y; ++tile) {
    vec4 score[kTileM];
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) score[m] = vec4(0.0);
    for (uint begin = 0u; begin < kDepth; begin += kStageDepth) {
      barrier();
      stage_keys(k_base, tile, begin);
      barrier();
      multiply_keys(begin, score);
    }
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      const uint row = row_of(m);
      score[m] = finished(score[m], place, min(first + row, p.queries - 1u), tile);
      of_lanes[2u * row + key_lane() / 4u][key_lane() % 4u] = highest_of(kLowestFloat, score[m]);
    }
    barrier();
    weigh(score);
    for (uint begin = 0u; begin < kKeys; begin += kStageKeys) {
      if (begin != 0u) barrier();
      stage_values(v_base, tile, begin);
      barrier();
      if (wild_tile == tile + 1u) {
        add_wild_values(begin);
      } else {
        add_values(begin);
      }
    }
  }
  barrier();
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    of_lanes[2u * row_of(m) + key_lane() / 4u][key_lane() % 4u] = total[m];
  }
  barrier();
  const uint out_base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    if (first + row_of(m) <= last) write_row(out_base, first + row_of(m), m);
  }
}
