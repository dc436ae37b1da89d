#version 450
#extension GL_GOOGLE_include_directive : require
// computes: as attention_decode
// shapes:   as attention_decode: Q (slots, H, E), Kv (R, lines, Hkv * (E + Ev)) or (B, S, ...), Aux
//           -> Y (slots, H * Ev) or (slots, H, kParts, Ev + 2)
// mapping:  a workgroup is one subgroup and owns one slot (x), kHeads heads of one kv head (y) and
//           a part of the keys (z); for scores a lane owns a key, for sums a run of columns, both
//           in registers
// bounds:   position and S may be anything; kRun > 1 needs E, Ev and the line in multiples of it;
//           slots beyond the live ones are skipped
// requires: subgroup arithmetic and shuffle, 64-bit integers, kLocalSize the subgroup size; meant
//           for software devices, where a load costs as much as many products
// variants: attention_decode_lanes__f32_f32_f32_subgroup_int64 FEATURES subgroup int64 software
//           attention_decode_lanes__f32_packed_f32_subgroup_int64 FEATURES subgroup int64 software DEFINES VKF_PACKED=1
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ATTENTION_DECODE_LANES_CONSTANTS)
const uint kRelative = 0;
const uint kSpan = kLocalSize * kRun;
const uint kValueChunks = (kValueWidth + kSpan - 1) / kSpan;
const uint kPieces = (kWidth + kLocalSize - 1) / kLocalSize;
// Keys under one running maximum. These are as many as in a round of attention_lanes over few keys.
// So a step gives the bits of the same query in a prompt.
const uint kRound = 2u;

#include "cache_line.glsl"
#include "decode_state.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"

layout(push_constant) uniform Params { AttentionDecodeParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Kv { float kv[]; };
layout(binding = 2) readonly buffer Aux { uint aux[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#include "decode_keys.glsl"
#include "lane_runs.glsl"
#if VKF_PACKED
layout(binding = 1) readonly buffer KvWords { uint kv_words[]; };
#include "cache_words.glsl"
#endif
#include "score_shape.glsl"

float piece[kHeads * kPieces];  // of the queries: element e in lane e % kLocalSize
float score[kHeads];            // of this lane's key; then its weight
float fade[kHeads];             // what sums are still worth when this lane's round begins
float highest[kHeads];
float total[kHeads];
float sum[kHeads * kValueChunks * kRun];  // this lane's columns
uint touched = 0u;

void load_queries(uint slot, uint first_head) {
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    const uint base = p.q_offset + slot * p.q_stride + (first_head + h) * kWidth;
    [[unroll]] for (uint c = 0u; c < kPieces; ++c) {
      const uint e = min(c * kLocalSize + gl_SubgroupInvocationID, kWidth - 1u);
      piece[h * kPieces + c] = q[base + e];
    }
    const float sink = sink_score(first_head + h);
    highest[h] = sink_highest(sink);
    total[h] = sink_total(sink);
    [[unroll]] for (uint i = 0u; i < kValueChunks * kRun; ++i) {
      sum[h * kValueChunks * kRun + i] = 0.0;
    }
  }
}

// loaded = elements of the line that begins at `line`.
void load_line(uint line, uint column) {
#if VKF_PACKED
  if (kRun == 1u) {
    loaded[0] = cached(line, column);
    return;
  }
  [[unroll]] for (uint i = 0u; i < kRun; i += 4u) {
    const vec4 quad = cached_quad(line, column + i);
    [[unroll]] for (uint e = 0u; e < 4u; ++e) loaded[min(i + e, kRun - 1u)] = quad[e];
  }
#else
  load_run(line + column);
#endif
}

// Reads a word of every 64 bytes of what this lane's key and value take. A gather waits for its own
// cache misses only, and what follows it is too long to be begun meanwhile. Asked for together, a
// tile's lines come in a third of the time.
void touch_run(uint line, uint column, uint width) {
#if VKF_PACKED
  const uint elements = kCacheFormat == kCacheF16 ? 32u : 64u;  // of 64 bytes
#else
  const uint elements = 16u;
#endif
  [[unroll]] for (uint e = 0u; e < width; e += elements) {
    const uint at = column + e;
#if VKF_PACKED
    touched |= kv_words[line + (kCacheFormat == kCacheF16 ? at >> 1u : at >> 2u)];
#else
    touched |= floatBitsToUint(kv[line + at]);
#endif
  }
}

// score = q . k for this lane's key, in the line that begins at `line`.
void dot_key(uint line, uint column) {
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) score[h] = 0.0;
  [[unroll]] for (uint e = 0u; e < kWidth; e += kRun) {
    load_line(line, column + e);
    [[unroll]] for (uint i = 0u; i < kRun; ++i) {
      [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
        const uint at = e + i;
        const float element =
            subgroupShuffle(piece[h * kPieces + at / kLocalSize], at % kLocalSize);
        score[h] = fma(element, loaded[i], score[h]);
      }
    }
  }
}

// Scores become weights under the maximum of all keys up to the end of their round.
void update_weights(uint h) {
  float before = highest[h], now = highest[h];  // of this lane's round
  [[unroll]] for (uint n = 0u; n < kLocalSize; n += kRound) {
    const float reached = highest[h];
    [[unroll]] for (uint i = 0u; i < kRound; ++i) {
      highest[h] = keep_max(highest[h], subgroupShuffle(score[h], n + i));
    }
    if (gl_SubgroupInvocationID / kRound == n / kRound) {
      before = reached;
      now = highest[h];
    }
  }
  fade[h] = now > before ? online_fade(before, now, 1.0) : 1.0;
  score[h] = online_weight(score[h], now, 1.0);
}

// sum += weights times the values of the lanes' keys, in order; a masked one's may be anything.
void add_values(uint line, uint column) {
  [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
    if (n % kRound == 0u) {
      [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
        const float worth = subgroupShuffle(fade[h], n);
        total[h] *= worth;
        [[unroll]] for (uint i = 0u; i < kValueChunks * kRun; ++i) {
          sum[h * kValueChunks * kRun + i] *= worth;
        }
      }
    }
    [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
      const float weight = subgroupShuffle(score[h], n);
      total[h] += is_masked_weight(weight) ? 0.0 : weight;
    }
    const uint row = subgroupShuffle(line, n);
    [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
      load_line(row, column + min(c * kSpan + gl_SubgroupInvocationID * kRun, kValueWidth - kRun));
      [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
        const float weight = subgroupShuffle(score[h], n);
        const uint keep = is_masked_weight(weight) ? 0u : ~0u;
        const float share = is_masked_weight(weight) ? 0.0 : weight;
        [[unroll]] for (uint i = 0u; i < kRun; ++i) {
          const uint at = (h * kValueChunks + c) * kRun + i;
          sum[at] = fma(share, uintBitsToFloat(floatBitsToUint(loaded[i]) & keep), sum[at]);
        }
      }
    }
  }
}

void store_results(uint slot, uint head, uint h) {
  const float share = online_result(1.0, total[h]);
  const uint part = part_result(slot, head, kValueWidth);
  const uint base = kPartKeys != 0u ? part + 2u : slot * p.y_stride + head * kValueWidth;
  if (kPartKeys != 0u && gl_SubgroupInvocationID == 0u) {
    y[part] = highest[h];
    y[part + 1u] = total[h];
  }
  [[unroll]] for (uint c = 0u; c < kValueChunks; ++c) {
    const uint column = c * kSpan + gl_SubgroupInvocationID * kRun;
    [[unroll]] for (uint i = 0u; i < kRun; ++i) {
      const float value = sum[(h * kValueChunks + c) * kRun + i];
      if (column < kValueWidth) {
        y[base + column + i] = kPartKeys != 0u                ? value
                               : floatBitsToUint(share) == 0u ? 0.0
                                                              : value * share;
      }
    }
  }
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint first_head = gl_WorkGroupID.y * kHeads;
  const uint kv_head = first_head / p.heads_per_kv;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  load_queries(slot, first_head);
  position = state.position - VKF_SLOT_START(entry);
  find_keys();
  const uvec2 part = part_of(sinks_seen + recent.y - recent.x);
  // Keys before the first and after the last repeat it, masked.
  const uint lead = keys_from_multiple(part.x, kRound);
  for (uint tile = part.x; tile < part.y + lead; tile += kLocalSize) {
    const uint at = tile + gl_SubgroupInvocationID;
    const uint n = clamp(at, part.x + lead, part.y + lead - 1u) - lead;
    const uint j = key_at(n);
    const uint line = line_of(row, j) * p.line;
    touch_run(line, kv_head * kWidth, kWidth);
    touch_run(line, p.value_offset + kv_head * kValueWidth, kValueWidth);
    dot_key(line, kv_head * kWidth);
    const bool allowed = at == n + lead && key_allowed(row, j);
    const int distance = int(j) - int(n < sinks_seen ? p.context - 1u : position);
    [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
      const float value = soft_capped(score[h] * p.scale) + distance_bias(first_head + h, distance);
      score[h] = allowed ? value : negative_infinity();
      update_weights(h);
    }
    add_values(line, p.value_offset + kv_head * kValueWidth);
  }
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) store_results(slot, first_head + h, h);
  if (p.line == 0u) y[0] = uintBitsToFloat(touched);  // never; or the words would not be read
}
