#version 450
#extension GL_GOOGLE_include_directive : require
// computes: cache[row of slot, own position] = the key and value columns of x[slot]; a prompt's: of
//           x[item, token]
// shapes:   X (slots, row_stride) or (B, P, row_stride), State -> Cache (R, lines, Hkv * (E + Ev))
// mapping:  a workgroup owns one slot or token (x, y); an invocation takes every kLocalSize-th
//           element of its line
// bounds:   slots beyond the live ones and positions beyond C are skipped, of a prompt those that
//           are padding or roll out
// requires: nothing (baseline); VKF_PACKED: the cache is words (base/matrix_format.h); VKF_PROMPT:
//           token t of item b goes to position t of the item's first row
// variants: kv_append_slot__f32_none_f32
//           kv_append_prompt__f32_none_f32 DEFINES VKF_PROMPT=1
//           kv_append_slot__f32_none_packed DEFINES VKF_PACKED=1
//           kv_append_prompt__f32_none_packed DEFINES VKF_PACKED=1 VKF_PROMPT=1
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_KV_APPEND_CONSTANTS)

#include "cache_line.glsl"
#include "decode_state.h"

layout(push_constant) uniform Params { KvAppendParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
#if VKF_PACKED
layout(binding = 1) writeonly buffer Cache { uint cache[]; };
#else
layout(binding = 1) writeonly buffer Cache { float cache[]; };
#endif
layout(binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#ifdef VKF_PROMPT
#include "rows.glsl"
#endif

// Where element i of a line is in a row of X.
uint column_of(uint i) { return i < p.k_width ? p.k_offset + i : p.v_offset + (i - p.k_width); }

#if VKF_PACKED
#include "cache_pack.glsl"

float element(uint from, uint i) {
  return i < p.k_width + p.v_width ? x[from + column_of(i)] : 0.0;
}

// A run of 32 elements, the last one filled up with zeros.
void pack_run(uint from, uint line, uint run) {
  const uint first = 32u * run;
  if (kCacheFormat == kCacheF16) {
    for (uint i = 0u; i < 16u; ++i) {
      const uint at = first + 2u * i;
      cache[line + 16u * run + i] =
          packHalf2x16(vec2(inside_half(element(from, at)), inside_half(element(from, at + 1u))));
    }
    return;
  }
  uint largest = 0u;
  for (uint i = 0u; i < 32u; ++i) largest = max(largest, magnitude_bits(element(from, first + i)));
  const float scale = scale_of(largest);
  const uint runs = (p.k_width + p.v_width + 31u) / 32u;
  cache[line + 8u * runs + run] = floatBitsToUint(scale);
  for (uint i = 0u; i < 8u; ++i) {
    uint word = 0u;
    for (uint e = 0u; e < 4u; ++e) {
      word |= byte_of(element(from, first + 4u * i + e), scale) << (8u * e);
    }
    cache[line + 8u * run + i] = word;
  }
}
#endif

void main() {
#ifdef VKF_PROMPT
  const uint slot = row_group_index();
  if (slot >= p.rows) return;
  const uint row = slot / p.tokens * p.beams;
  const uint position = slot % p.tokens;
  // Slots are rows before the first step, whose position the item's last token has.
  const uint end = state.position - VKF_SLOT_START(slot_rows[row >> 2u][row & 3u]);
  if (position >= end || (position >= p.sinks && end - position > p.lines - p.sinks)) return;
#else
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  const uint position = state.position - VKF_SLOT_START(entry);
#endif
  if (position >= p.positions) return;
  const uint line = row * p.lines + cache_line(position, p.sinks, p.lines);
#if VKF_PACKED
  const uint from = (kFromRow != 0u ? row : slot) * p.row_stride;
  const uint runs = (p.k_width + p.v_width + 31u) / 32u;
  const uint words = runs * (kCacheFormat == kCacheF16 ? 16u : 9u);
  for (uint run = gl_LocalInvocationID.x; run < runs; run += kLocalSize) {
    pack_run(from, line * words, run);
  }
#else
  const uint width = p.k_width + p.v_width;
  const uint from = slot * p.row_stride;
  for (uint i = gl_LocalInvocationID.x; i < width; i += kLocalSize) {
    cache[line * width + i] = x[from + column_of(i)];
  }
#endif
}
