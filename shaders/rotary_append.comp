#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the queries of a decoding step's rows, turned by their position's angles (Su et al.,
//           2021, RoFormer), and the keys, turned, and values in the cache; queries may follow
//           again
// shapes:   X (slots, at least (H + Hkv) E + Hkv Ev), Table (P, 2 pairs), State -> Y (slots, (H +
//           again) E), Cache (R, lines, Hkv (E + Ev))
// mapping:  one workgroup kHeadsPerGroup heads of a slot; heads on z, slots on x; an invocation
//           takes every kLocalSize-th pair or column of a head
// bounds:   E and pairs <= E / 2 may be anything; slots beyond the live ones and positions without
//           a line are skipped; a position beyond the table gives NaN
// requires: nothing (baseline)
// variants: rotary_append__f32_f32_f32
#include "rotary.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ROTARY_APPEND_CONSTANTS)

#include "cache_line.glsl"
#include "decode_state.h"
#include "float_bits.glsl"

layout(push_constant) uniform Params { RotaryAppendParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Table { float table[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Cache { float cache[]; };
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};

void store(bool query, uint to, float value) {
  if (query) {
    y[to] = value;
  } else {
    cache[to] = value;
  }
}

// Of the head at x[from], to the queries or the cache.
void turn_pairs(uint from, bool query, uint to, uint position) {
  const bool exists = position < p.table_rows;
  const uint angles = position * 2u * p.pairs;
  const uint apart = kInterleaved != 0u ? 1u : p.pairs;
  for (uint i = gl_LocalInvocationID.x; i < p.pairs; i += kLocalSize) {
    const uint at = kInterleaved != 0u ? 2u * i : i;
    vec2 turned = vec2(make_nan());
    if (exists) {
      const float cosine = table[angles + i];
      const float sine = table[angles + p.pairs + i];
      const float u = x[from + at];
      const float v = x[from + at + apart];
      turned = vec2(u * cosine - v * sine, v * cosine + u * sine);
    }
    store(query, to + at, turned.x);
    store(query, to + at + apart, turned.y);
  }
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint position = state.position - VKF_SLOT_START(entry);
  const uint line = p.kv_heads * (p.head_width + p.value_width);
  const uint row = (VKF_SLOT_ROW(entry) * p.lines + cache_line(position, p.sinks, p.lines)) * line;
  const uint in_x = p.heads + 2u * p.kv_heads;
  const uint turned_heads = p.heads + p.kv_heads;
  const uint x_row = slot * p.row_stride;
  for (uint h = 0u; h < kHeadsPerGroup; ++h) {
    // Heads of X, then the queries once more.
    const uint head = gl_WorkGroupID.z * kHeadsPerGroup + h;
    if (head >= in_x + p.again_heads) return;
    const bool again = head >= in_x;
    const bool query = again || head < p.heads;
    if (!query && position >= p.positions) continue;
    // Values follow all heads that are rotated.
    const bool is_value = !again && head >= turned_heads;
    const uint width = is_value ? p.value_width : p.head_width;
    const uint first = again ? head - in_x : min(head, turned_heads);
    const uint beyond = is_value ? (head - turned_heads) * p.value_width : 0u;
    const uint from = x_row + first * p.head_width + beyond;
    uint to = row + (first - p.heads) * p.head_width + beyond;
    if (query) {
      const uint place = again ? head - in_x + p.heads : head;
      to = (slot * (p.heads + p.again_heads) + place) * p.head_width;
    }
    uint copied = 0u;
    if (!is_value) {
      turn_pairs(from, query, to, again ? min(position, p.again_limit) : position);
      copied = 2u * p.pairs;
    }
    for (uint i = copied + gl_LocalInvocationID.x; i < width; i += kLocalSize) {
      store(query, to + i, x[from + i]);
    }
  }
}
