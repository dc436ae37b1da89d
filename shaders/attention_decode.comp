#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(softcap(scale q k^T) + alibi or bias by distance) v for the one query of every live slot (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (slots, H, E) by offset and stride, Kv (R, lines, Hkv * (E + Ev)) or (B, S, Hkv * (E + Ev)), Aux: ancestry (R, C) and what is added by distance, or key mask (B, ceil(S/32)) -> Y (slots, H * Ev), or (slots, H, kParts, Ev + 2) to be merged
// mapping:  a workgroup owns one slot (x), kHeads heads of one kv head (y) and a part of the keys (z); an invocation first one key of a tile, then every kLocalSize-th value column
// bounds:   position, S, E and Ev may be anything; kQuads needs rows of k at multiples of 4; slots beyond the live ones are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: attention_decode__f32_f32_f32
//           attention_decode__f32_f32_f32_subgroup FEATURES subgroup
//           attention_decode__f32_packed_f32 DEFINES VKF_PACKED=1
//           attention_decode__f32_packed_f32_subgroup FEATURES subgroup DEFINES VKF_PACKED=1
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_DECODE_CONSTANTS)
const uint kRelative = 0;
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;
const uint kGroupQueries = 8u;  // of attention_tiled

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

shared float q_row[kQueries * kHeads * kWidth];    // (kHeads, E), then those for the sinks
shared float weight_tile[kHeads * kLocalSize];     // (kHeads, kLocalSize)
shared uint line_tile[kLocalSize];                 // the cache line of each key

float score[kHeads];
float sum[kHeads * kColumns];
float highest[kHeads];
float total[kHeads];

// The scores of the n-th key, in a line that begins at `line`; -inf where masked.
void key_scores(uint row, uint first_head, uint n, uint line) {
  const uint j = key_at(n);
  const bool sink = n < sinks_seen;
  const uint query = kQueries > 1u && sink ? kHeads * kWidth : 0u;
  const uint column = first_head / p.heads_per_kv * kWidth;
  if (kQuads != 0u) {
    for (uint e = 0u; e < kWidth; e += 4u) {
      const vec4 k = cached_quad(line, column + e);
      for (uint h = 0u; h < kHeads; ++h) {
        const uint at = query + h * kWidth + e;
        score[h] += q_row[at] * k.x + q_row[at + 1u] * k.y + q_row[at + 2u] * k.z +
                    q_row[at + 3u] * k.w;
      }
    }
  } else {
    for (uint e = 0u; e < kWidth; ++e) {
      const float k = cached(line, column + e);
      for (uint h = 0u; h < kHeads; ++h) score[h] += q_row[query + h * kWidth + e] * k;
    }
  }
  const int distance = int(j) - int(sink ? p.context - 1u : position);
  const bool allowed = key_allowed(row, j);
  for (uint h = 0u; h < kHeads; ++h) {
    const float value = soft_capped(score[h] * p.scale) + distance_bias(first_head + h, distance);
    score[h] = allowed ? value : negative_infinity();
  }
}

void load_queries(uint slot, uint first_head) {
  for (uint e = gl_LocalInvocationID.x; e < kHeads * kWidth; e += kLocalSize) {
    const uint from = slot * p.q_stride + first_head * kWidth + e;
    q_row[e] = q[p.q_offset + from];
    if (kQueries > 1u) q_row[kHeads * kWidth + e] = q[p.sink_q_offset + from];
  }
}

// Scores of a tile become weights, and what was summed so far fades.
void update_weights(uint h) {
  const float now = keep_max(highest[h], workgroup_max(keep_max(kLowestFloat, score[h])));
  const float fade = now > highest[h] ? online_fade(highest[h], now, 1.0) : 1.0;
  highest[h] = now;
  const float weight = online_weight(score[h], now, 1.0);
  total[h] = total[h] * fade + (is_masked_weight(weight) ? 0.0 : weight);
  weight_tile[h * kLocalSize + gl_LocalInvocationID.x] = weight;
  for (uint c = 0u; c < kColumns; ++c) sum[h * kColumns + c] *= fade;
}

void add_values(uint count, uint offset) {
  float value[kColumns];
  for (uint n = 0u; n < count; ++n) {
    for (uint c = 0u; c < kColumns; ++c) {
      const uint column = gl_LocalInvocationID.x + c * kLocalSize;
      value[c] = cached(line_tile[n] * p.line, offset + min(column, kValueWidth - 1u));
    }
    for (uint h = 0u; h < kHeads; ++h) {
      const float weight = weight_tile[h * kLocalSize + n];
      if (is_masked_weight(weight)) continue;
      for (uint c = 0u; c < kColumns; ++c) sum[h * kColumns + c] += weight * value[c];
    }
  }
}

void store_results(uint slot, uint head, uint h) {
  const float weights = workgroup_sum(total[h]);
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
    for (uint h = 0u; h < kHeads; ++h) update_weights(h);
    line_tile[lane] = line;
    barrier();
    add_values(min(kLocalSize, end - tile), p.value_offset + kv_head * kValueWidth);
    barrier();
  }
  for (uint h = 0u; h < kHeads; ++h) store_results(slot, first_head + h, h);
}
