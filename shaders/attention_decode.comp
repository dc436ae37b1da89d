#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(softcap(scale q k^T) + alibi or bias by distance) v for the one query of every live slot (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (slots, H, E) by offset and stride, Kv (R, lines, Hkv * (E + Ev)) or (B, S, Hkv * (E + Ev)), Aux: ancestry (R, C) and what is added by distance, or key mask (B, ceil(S/32)) -> Y (slots, H * Ev)
// mapping:  a workgroup owns one slot (x) and head (y); an invocation first one key of a tile, then every kLocalSize-th value column
// bounds:   position, S, E and Ev may be anything; slots beyond the live ones are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kWidth = 64;       // E
layout(constant_id = 2) const uint kValueWidth = 64;  // Ev
layout(constant_id = 3) const uint kCross = 0;        // 0: the cache of earlier steps; 1: an encoder's keys
layout(constant_id = 4) const uint kQueries = 1;      // 2: the sinks meet a query of their own
layout(constant_id = 5) const uint kRolls = 0;        // 1: the cache has fewer lines than positions
layout(constant_id = 6) const uint kSoftcap = 0;      // bits of a float; 0: none
const uint kRelative = 0;
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;

#include "attention.h"
#include "cache_line.glsl"
#include "decode_state.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "reduce.glsl"

layout(push_constant) uniform Params { AttentionDecodeParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Aux { uint aux[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#include "score_shape.glsl"

shared float q_row[kQueries * kWidth];  // (E), then the one for the sinks
shared float weight_tile[kLocalSize];   // (kLocalSize)
shared uint line_tile[kLocalSize];      // (kLocalSize): the cache line of each key

// The line of key j in Kv: of the row that owns the position, or of the batch item.
uint line_of(uint row, uint j) {
  if (kCross != 0u) return row / p.beams * p.lines + j;
  const uint owner = p.has_aux != 0u && p.beams > 1u ? aux[row * p.positions + j] : row;
  return owner * p.lines + (kRolls != 0u ? cache_line(j, p.sinks, p.lines) : j);
}

bool key_allowed(uint row, uint j) {
  if (kCross == 0u || p.has_aux == 0u) return true;
  const uint words = (p.lines + 31u) >> 5u;
  return (aux[row / p.beams * words + (j >> 5u)] & (1u << (j & 31u))) != 0u;
}

uint position;       // of the query in its own row
uint sinks_seen;     // keys that are seen before those of [recent.x, recent.y)
uint first_sink;     // the first of them
uvec2 recent;

// The keys that the query sees: the last ones, and once keys have been left out the sinks, as far
// as the window reaches within what is left.
void find_keys() {
  sinks_seen = 0u;
  first_sink = 0u;
  recent = uvec2(0u, p.lines);
  if (kCross != 0u) return;
  const bool rolled = p.context != 0u && position >= p.context;
  recent.y = min(position + 1u, p.positions);
  uint seen = rolled ? p.context - p.sinks : position + 1u;
  if (p.window != 0u) seen = min(seen, p.window);
  recent.x = min(position + 1u - seen, recent.y);
  if (!rolled) return;
  if (p.window != 0u && p.window < p.context) first_sink = min(p.sinks, p.context - p.window);
  sinks_seen = p.sinks - first_sink;
}

// The position of the n-th key that is seen.
uint key_at(uint n) { return n < sinks_seen ? first_sink + n : recent.x + (n - sinks_seen); }

// What the distance to a key adds.
float distance_bias(uint head, int distance) {
  float value = 0.0;
  if (p.slopes_offset != VKF_NO_TERM) {
    value = uintBitsToFloat(aux[p.slopes_offset + head]) * float(distance);
  }
  if (p.distance_offset != VKF_NO_TERM) {
    const int reach = int(aux[p.distance_offset]);
    const uint column = uint(clamp(distance, -reach, reach) + reach);
    value += uintBitsToFloat(aux[p.distance_offset + 1u + head * uint(2 * reach + 1) + column]);
  }
  return value;
}

// The score of the n-th key, which lies at `base`; -inf where masked.
float key_score(uvec2 place, uint n, uint base) {
  const uint j = key_at(n);
  if (!key_allowed(place.x, j)) return negative_infinity();
  const bool sink = n < sinks_seen;
  float value = 0.0;
  if (kQueries == 1u) {
    for (uint e = 0u; e < kWidth; ++e) value += q_row[e] * kv[base + e];
  } else {
    const uint query = sink ? kWidth : 0u;
    for (uint e = 0u; e < kWidth; ++e) value += q_row[query + e] * kv[base + e];
  }
  const int distance = int(j) - int(sink ? p.context - 1u : position);
  return soft_capped(value * p.scale) + distance_bias(place.y, distance);
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint kv_head = head / p.heads_per_kv;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  for (uint e = lane; e < kWidth; e += kLocalSize) {
    const uint from = slot * p.q_stride + head * kWidth + e;
    q_row[e] = q[p.q_offset + from];
    if (kQueries > 1u) q_row[kWidth + e] = q[p.sink_q_offset + from];
  }
  float sum[kColumns];
  for (uint c = 0u; c < kColumns; ++c) sum[c] = 0.0;
  float highest = kLowestFloat;
  float total = 0.0;
  position = state.position - VKF_SLOT_START(entry);
  find_keys();
  const uint end = sinks_seen + recent.y - recent.x;
  barrier();
  for (uint tile = 0u; tile < end; tile += kLocalSize) {
    float score = negative_infinity();
    uint line = 0u;
    if (tile + lane < end) {
      line = line_of(row, key_at(tile + lane));
      score = key_score(uvec2(row, head), tile + lane, line * p.line + kv_head * kWidth);
    }
    const float now = keep_max(highest, workgroup_max(keep_max(kLowestFloat, score)));
    const float fade = online_fade(highest, now, 1.0);
    highest = now;
    const float weight = online_weight(score, now, 1.0);
    total = total * fade + (is_masked_weight(weight) ? 0.0 : weight);
    weight_tile[lane] = weight;
    line_tile[lane] = line;
    for (uint c = 0u; c < kColumns; ++c) sum[c] *= fade;
    barrier();
    const uint count = min(kLocalSize, end - tile);
    for (uint n = 0u; n < count; ++n) {
      const float value_weight = weight_tile[n];
      if (is_masked_weight(value_weight)) continue;
      const uint base = line_tile[n] * p.line + p.value_offset + kv_head * kValueWidth;
      for (uint c = 0u; c < kColumns; ++c) {
        sum[c] += value_weight * kv[base + min(lane + c * kLocalSize, kValueWidth - 1u)];
      }
    }
    barrier();
  }
  total = workgroup_sum(total);
  for (uint c = 0u; c < kColumns; ++c) {
    const uint column = lane + c * kLocalSize;
    if (column < kValueWidth) {
      y[slot * p.y_stride + head * kValueWidth + column] = online_result(sum[c], total);
    }
  }
}
