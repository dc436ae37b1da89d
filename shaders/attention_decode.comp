#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = softmax(scale q k^T + alibi or bias by distance) v for the one query of every live slot (online softmax, Milakov and Gimelshein 2018)
// shapes:   Q (slots, H, E) by offset and stride, Kv (R, C, Hkv * (E + Ev)) or (B, S, Hkv * (E + Ev)), Aux: ancestry (R, C) and what is added by distance, or key mask (B, ceil(S/32)) -> Y (slots, H * Ev)
// mapping:  a workgroup owns one slot (x) and head (y); an invocation first one key of a tile, then every kLocalSize-th value column
// bounds:   position, S, E and Ev may be anything; slots beyond the live ones are skipped
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kWidth = 64;       // E
layout(constant_id = 2) const uint kValueWidth = 64;  // Ev
layout(constant_id = 3) const uint kCross = 0;        // 0: the cache of earlier steps; 1: an encoder's keys
const uint kColumns = (kValueWidth + kLocalSize - 1) / kLocalSize;

#include "attention.h"
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

shared float q_row[kWidth];             // (E)
shared float weight_tile[kLocalSize];   // (kLocalSize)
shared uint line_tile[kLocalSize];      // (kLocalSize): the cache line of each key

// The line of key j in Kv: of the row that owns the position, or of the batch item.
uint line_of(uint row, uint j) {
  if (kCross != 0u) return row / p.beams * p.lines + j;
  const uint owner = p.has_aux != 0u && p.beams > 1u ? aux[row * p.lines + j] : row;
  return owner * p.lines + j;
}

bool key_allowed(uint row, uint j) {
  if (kCross == 0u || p.has_aux == 0u) return true;
  const uint words = (p.lines + 31u) >> 5u;
  return (aux[row / p.beams * words + (j >> 5u)] & (1u << (j & 31u))) != 0u;
}

uint position;  // of the query in its own row

// What the distance from the query to key j adds.
float distance_bias(uint head, uint j) {
  const int distance = int(j) - int(position);
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

// The score of key j, -inf where masked.
float key_score(uvec2 place, uint j, uint base) {
  if (!key_allowed(place.x, j)) return negative_infinity();
  float value = 0.0;
  for (uint e = 0u; e < kWidth; ++e) value += q_row[e] * kv[base + e];
  return value * p.scale + distance_bias(place.y, j);
}

// The keys [x, y) that the query sees.
uvec2 seen_keys() {
  if (kCross != 0u) return uvec2(0u, p.lines);
  const uint end = min(position + 1u, p.lines);
  return uvec2(p.window == 0u || position + 1u < p.window ? 0u : position + 1u - p.window, end);
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
    q_row[e] = q[p.q_offset + slot * p.q_stride + head * kWidth + e];
  }
  float sum[kColumns];
  for (uint c = 0u; c < kColumns; ++c) sum[c] = 0.0;
  float highest = kLowestFloat;
  float total = 0.0;
  position = state.position - VKF_SLOT_START(entry);
  const uvec2 keys = seen_keys();
  const uint end = keys.y;
  barrier();
  for (uint tile = keys.x; tile < end; tile += kLocalSize) {
    float score = negative_infinity();
    uint line = 0u;
    if (tile + lane < end) {
      line = line_of(row, tile + lane);
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
