#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(softcap(scale q k^T) + alibi or bias by distance) v for the one query of
//           every live slot (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (slots, H, E) by offset and stride, Kv (R, lines, Hkv * (E + Ev)) or (B, S, Hkv * (E
//           + Ev)), Aux: ancestry (R, C) and what is added by distance, or key mask (B, ceil(S/32))
//           -> Y (slots, H * Ev), or (slots, H, kParts, Ev + 2) to be merged
// mapping:  a workgroup owns one slot (x), kHeads heads of one kv head (y) and a part of the keys
//           (z); an invocation first one key of a tile, then every kLocalSize-th value column
// bounds:   position, S, E and Ev may be anything; kQuads needs rows of k at multiples of 4; slots
//           beyond the live ones are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: attention_decode__f32_f32_f32
//           attention_decode__f32_f32_f32_subgroup FEATURES subgroup
//           attention_decode__f32_packed_f32 DEFINES VKF_PACKED=1
//           attention_decode__f32_packed_f32_subgroup FEATURES subgroup DEFINES VKF_PACKED=1
#extension GL_EXT_control_flow_attributes : require
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_DECODE_CONSTANTS)
const uint kRelative = 0;
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;
const uint kGroupQueries = 8u;  // of attention_tiled
// Loads of global memory that are under way at a time. Loads of a key have four elements, or one
// where those are not in fours; others are of values. A tile has a whole number of kValueKeys.
const uint kKeyLoads = 8u;
const uint kMostValueKeys = kColumns > 8u   ? 1u
                            : kColumns > 4u ? 2u
                            : kColumns > 2u ? 4u
                            : kColumns > 1u ? 8u
                                            : 16u;
const uint kValueKeys = kMostValueKeys < kLocalSize ? kMostValueKeys : kLocalSize;
const uint kQueryLoads = 4u;

#include "cache_line.glsl"
#include "decode_state.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"

layout(push_constant) uniform Params { AttentionDecodeParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
#if VKF_PACKED
layout(binding = 1) readonly buffer KvWords { uint kv_words[]; };
#include "cache_words.glsl"
#else
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 1) readonly buffer KvQuads { vec4 kv_quads[]; };
float cached(uint line, uint column) { return kv[line + column]; }
vec4 cached_quad(uint line, uint column) { return kv_quads[(line + column) >> 2u]; }
#endif
layout(binding = 2) readonly buffer Aux { uint aux[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#include "score_shape.glsl"
#include "decode_keys.glsl"

shared float q_row[kQueries * kHeads * kWidth];  // (kHeads, E), then those for the sinks
shared float weight_tile[kHeads * kLocalSize];   // (kHeads, kLocalSize)
shared uint line_tile[kLocalSize];               // the cache line of each key

float score[kHeads];
float sum[kHeads * kColumns];
float highest[kHeads];
float total[kHeads];

// Adds the products of kKeyLoads fours of a key, from element `begin` on, that begin in its width.
void add_quads(uint query, uint line, uint column, uint begin) {
  vec4 k[kKeyLoads];
  [[unroll]] for (uint n = 0u; n < kKeyLoads; ++n) {
    k[n] = cached_quad(line, column + min(begin + 4u * n, kWidth - 4u));
  }
  [[unroll]] for (uint n = 0u; n < kKeyLoads; ++n) {
    const uint e = begin + 4u * n;
    if (kWidth % (4u * kKeyLoads) != 0u && e >= kWidth) break;
    for (uint h = 0u; h < kHeads; ++h) {
      const uint at = query + h * kWidth + e;
      score[h] += q_row[at] * k[n].x + q_row[at + 1u] * k[n].y + q_row[at + 2u] * k[n].z +
                  q_row[at + 3u] * k[n].w;
    }
  }
}

// The same of kKeyLoads elements.
void add_elements(uint query, uint line, uint column, uint begin) {
  float k[kKeyLoads];
  [[unroll]] for (uint n = 0u; n < kKeyLoads; ++n) {
    k[n] = cached(line, column + min(begin + n, kWidth - 1u));
  }
  [[unroll]] for (uint n = 0u; n < kKeyLoads; ++n) {
    if (kWidth % kKeyLoads != 0u && begin + n >= kWidth) break;
    for (uint h = 0u; h < kHeads; ++h) score[h] += q_row[query + h * kWidth + begin + n] * k[n];
  }
}

// The scores of the n-th key, in a line that begins at `line`; -inf where masked.
void key_scores(uint row, uint first_head, uint n, uint line) {
  const uint j = key_at(n);
  const bool sink = n < sinks_seen;
  const uint query = kQueries > 1u && sink ? kHeads * kWidth : 0u;
  const uint column = first_head / p.heads_per_kv * kWidth;
  if (kQuads != 0u) {
    for (uint e = 0u; e < kWidth; e += 4u * kKeyLoads) add_quads(query, line, column, e);
  } else {
    for (uint e = 0u; e < kWidth; e += kKeyLoads) add_elements(query, line, column, e);
  }
  const int distance = int(j) - int(sink ? p.context - 1u : position);
  const bool allowed = key_allowed(row, j);
  for (uint h = 0u; h < kHeads; ++h) {
    const float value = soft_capped(score[h] * p.scale) + distance_bias(first_head + h, distance);
    score[h] = allowed ? value : negative_infinity();
  }
}

void load_queries(uint slot, uint first_head) {
  const uint width = kHeads * kWidth;
  const uint from = slot * p.q_stride + first_head * kWidth;
  for (uint first = gl_LocalInvocationID.x; first < width; first += kQueryLoads * kLocalSize) {
    float value[2u * kQueryLoads];
    [[unroll]] for (uint n = 0u; n < kQueryLoads; ++n) {
      const uint e = min(first + n * kLocalSize, width - 1u);
      value[n] = q[p.q_offset + from + e];
      if (kQueries > 1u) value[kQueryLoads + n] = q[p.sink_q_offset + from + e];
    }
    [[unroll]] for (uint n = 0u; n < kQueryLoads; ++n) {
      const uint e = min(first + n * kLocalSize, width - 1u);
      q_row[e] = value[n];
      if (kQueries > 1u) q_row[width + e] = value[kQueryLoads + n];
    }
  }
}

// of[h] becomes the maximum, or the sum, of all invocations; all heads at once, since each would
// wait for shared memory by itself. weight_tile is free then, and needed by nobody until a barrier.
// Heads take turns inside the loop over subgroups: a loop with another in it is not unrolled, and
// its arrays would go to memory.
float of[kHeads];
void reduce_heads(bool highest_of) {
#ifdef VKF_SUBGROUP
  for (uint h = 0u; h < kHeads; ++h) of[h] = highest_of ? subgroupMax(of[h]) : subgroupAdd(of[h]);
  if (gl_NumSubgroups == 1u) return;
  for (uint h = 0u; h < kHeads; ++h) {
    if (subgroupElect()) weight_tile[h * kLocalSize + gl_SubgroupID] = of[h];
    of[h] = highest_of ? kLowestFloat : 0.0;
  }
  barrier();
  for (uint i = 0u; i < gl_NumSubgroups; ++i) {
    for (uint h = 0u; h < kHeads; ++h) {
      const float other = weight_tile[h * kLocalSize + i];
      of[h] = highest_of ? (other > of[h] ? other : of[h]) : of[h] + other;
    }
  }
  barrier();
#else
  for (uint h = 0u; h < kHeads; ++h) {
    of[h] = highest_of ? workgroup_max(of[h]) : workgroup_sum(of[h]);
  }
#endif
}

// Scores of a tile become weights, and what was summed so far fades.
void update_weights(uint h) {
  const float now = keep_max(highest[h], of[h]);
  const float fade = now > highest[h] ? online_fade(highest[h], now, 1.0) : 1.0;
  highest[h] = now;
  const float weight = online_weight(score[h], now, 1.0);
  total[h] = total[h] * fade + (is_masked_weight(weight) ? 0.0 : weight);
  weight_tile[h * kLocalSize + gl_LocalInvocationID.x] = weight;
  for (uint c = 0u; c < kColumns; ++c) sum[h * kColumns + c] *= fade;
}

// Adds the values of the first `count` keys of a tile, one after the other, and up to kValueKeys -
// 1 after them, which are masked. A masked value is not used: it may be NaN. The choice is among
// variables. glslang makes branches of a choice of an array's element. The time that SwiftShader
// takes to compile doubles with each of those.
void add_values(uint count, uint offset) {
  for (uint first = 0u; first < count; first += kValueKeys) {
    float value[kValueKeys * kColumns];
    [[unroll]] for (uint n = 0u; n < kValueKeys; ++n) {
      const uint line = line_tile[first + n] * p.line;
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        const uint column = gl_LocalInvocationID.x + c * kLocalSize;
        value[n * kColumns + c] = cached(line, offset + min(column, kValueWidth - 1u));
      }
    }
    for (uint h = 0u; h < kHeads; ++h) {
      [[unroll]] for (uint n = 0u; n < kValueKeys; ++n) {
        const float weight = weight_tile[h * kLocalSize + first + n];
        const bool masked = is_masked_weight(weight);
        [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
          const uint at = h * kColumns + c;
          const float before = sum[at];
          const float added = before + weight * value[n * kColumns + c];
          sum[at] = masked ? before : added;
        }
      }
    }
  }
}

void store_results(uint slot, uint head, uint h) {
  const float weights = of[h];
  const uint part = part_result(slot, head, kValueWidth);
  if (kPartKeys != 0u && gl_LocalInvocationID.x == 0u) {
    y[part] = highest[h];
    y[part + 1u] = weights;
  }
  for (uint c = 0u; c < kColumns; ++c) {
    const uint column = gl_LocalInvocationID.x + c * kLocalSize;
    if (column >= kValueWidth) continue;
    const float value = sum[h * kColumns + c];
    if (kPartKeys != 0u) {
      y[part + 2u + column] = value;
    } else {
      y[slot * p.y_stride + head * kValueWidth + column] = online_result(value, weights);
    }
  }
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint first_head = gl_WorkGroupID.y * kHeads;
  const uint kv_head = first_head / p.heads_per_kv;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  load_queries(slot, first_head);
  for (uint n = 0u; n < kHeads * kColumns; ++n) sum[n] = 0.0;
  for (uint h = 0u; h < kHeads; ++h) {
    const float sink = sink_score(first_head + h);
    highest[h] = sink_highest(sink);
    total[h] = lane == 0u ? sink_total(sink) : 0.0;
  }
  position = state.position - VKF_SLOT_START(entry);
  find_keys();
  const uvec2 part = part_of(sinks_seen + recent.y - recent.x);
  barrier();
  const uint lead = keys_from_group(part.x, kGroupQueries);
  const uint end = part.y + lead;
  for (uint tile = part.x; tile < end; tile += kLocalSize) {
    for (uint h = 0u; h < kHeads; ++h) score[h] = 0.0;
    uint line = 0u;
    if (tile + lane >= part.x + lead && tile + lane < end) {
      const uint n = tile + lane - lead;
      line = line_of(row, key_at(n));
      key_scores(row, first_head, n, line * p.line);
    } else {
      for (uint h = 0u; h < kHeads; ++h) score[h] = negative_infinity();
    }
    for (uint h = 0u; h < kHeads; ++h) of[h] = keep_max(kLowestFloat, score[h]);
    reduce_heads(true);
    for (uint h = 0u; h < kHeads; ++h) update_weights(h);
    line_tile[lane] = line;
    barrier();
    add_values(min(kLocalSize, end - tile), p.value_offset + kv_head * kValueWidth);
    barrier();
  }
  for (uint h = 0u; h < kHeads; ++h) of[h] = total[h];
  reduce_heads(false);
  for (uint h = 0u; h < kHeads; ++h) store_results(slot, first_head + h, h);
}
