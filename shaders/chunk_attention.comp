#version 450
#extension GL_GOOGLE_include_directive : require
// computes: attention of every chunk of a (sorted) row of tokens to itself and its neighbors,
//           cyclically over all rounds, in one pass (Kitaev, Kaiser and Levskaya 2020; online
//           softmax, Milakov and Gimelshein 2018)
// shapes:   X: q, k (B, H, S, E) and v (B, H, S, Ev) by HeadLayouts, Order (B, H, R, S), Mask (B,
//           ceil(S/32)) words -> Y (B, H, R * S, Ev) by its HeadLayout; with several rounds each
//           row ends with its highest score and the sum of weights
// mapping:  a workgroup owns kLocalSize queries of one chunk of one head; an invocation owns one, q
//           and y in registers; all read the same key at a time
// bounds:   every size may be anything; queries beyond a chunk and units beyond the last are
//           skipped; Order and Mask may be unused
// requires: nothing (baseline)
// variants: chunk_attention_query__f32_none_f32
#extension GL_EXT_control_flow_attributes : require
#include "lsh.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_CHUNK_ATTENTION_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { ChunkAttentionParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Order { uint order[]; };
layout(binding = 2) readonly buffer Mask { uint mask[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

// What the library gives a token that looks at itself, which it does only without another key.
const float kOwnScore = -1e5;
const float kLengthEpsilon = 1e-6;  // of the mean square of a key

float query[kWidth];
float sum[kValueWidth];
float highest = kLowestFloat;
float total = 0.0;

uint position_of(uint unit, uint place) {
  return kHasOrder != 0u ? order[unit * p.rounds * p.tokens + place] : place % p.tokens;
}

bool is_kept(uint batch, uint position) {
  if (kHasMask == 0u) return true;
  return (mask[batch * ((p.tokens + 31u) >> 5u) + (position >> 5u)] & (1u << (position & 31u))) !=
         0u;
}

// q.k of the key that starts at `base`, scaled; its length taken off where keys are queries.
float key_score(uint base) {
  float product = 0.0, squares = 0.0;
  [[unroll]] for (uint e = 0u; e < kWidth; ++e) {
    const float k = x[base + e];
    product = fma(query[e], k, product);
    if (kShared != 0u) squares = fma(k, k, squares);
  }
  if (kShared != 0u) product /= sqrt(squares / float(kWidth) + kLengthEpsilon);
  return product * p.scale;
}

void add_key(float score, uint v_base) {
  const float now = keep_max(highest, score);
  if (now > highest) {
    const float fade = online_fade(highest, now, 1.0);
    total *= fade;
    [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) sum[e] *= fade;
    highest = now;
  }
  const float weight = online_weight(score, now, 1.0);
  if (is_masked_weight(weight)) return;
  total += weight;
  [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) sum[e] = fma(weight, x[v_base + e], sum[e]);
}

void attend_chunk(uint unit, uint first, uint own) {
  const uint batch = unit / p.heads;
  const uint head = unit % p.heads;
  const uint k_base = p.k.offset + batch * p.k.batch_stride + head * p.k.head_stride;
  const uint v_base = p.v.offset + batch * p.v.batch_stride + head * p.v.head_stride;
  for (uint n = 0u; n < p.chunk; ++n) {
    const uint position = position_of(unit, first + n);
    const bool self = kShared != 0u && position == own;
    const bool seen = is_kept(batch, position) && (p.causal == 0u || position <= own);
    if (!seen && !self) continue;
    const float score = self ? kOwnScore : key_score(k_base + position * p.k.row_stride);
    add_key(score, v_base + position * p.v.row_stride);
  }
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint groups = (p.chunk + kLocalSize - 1u) / kLocalSize;
  const uint chunk = gl_WorkGroupID.x / groups;
  const uint in_chunk = gl_WorkGroupID.x % groups * kLocalSize + gl_LocalInvocationID.x;
  if (unit >= p.batch * p.heads || in_chunk >= p.chunk) return;
  const uint place = chunk * p.chunk + in_chunk;
  const uint own = position_of(unit, place);
  const uint batch = unit / p.heads;
  const uint head = unit % p.heads;
  const uint q_base =
      p.q.offset + batch * p.q.batch_stride + head * p.q.head_stride + own * p.q.row_stride;
  [[unroll]] for (uint e = 0u; e < kWidth; ++e) query[e] = x[q_base + e];
  [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) sum[e] = 0.0;
  const uint chunks = p.rounds * p.tokens / p.chunk;
  for (uint w = 0u; w <= p.before + p.after; ++w) {
    // As the library rolls chunks: a distance that there is not even room for counts as none.
    const int distance = int(w) - int(p.before);
    const int offset = abs(distance) < int(chunks) ? distance : 0;
    const uint neighbor = uint(int(chunk + chunks) + offset) % chunks;
    attend_chunk(unit, neighbor * p.chunk, own);
  }
  const uint row = place / p.tokens * p.tokens + own;
  const uint y_base =
      p.y.offset + batch * p.y.batch_stride + head * p.y.head_stride + row * p.y.row_stride;
  [[unroll]] for (uint e = 0u; e < kValueWidth; ++e) {
    y[y_base + e] = online_result(sum[e], total);
  }
  if (kStats != 0u) {
    y[y_base + kValueWidth] = highest;
    y[y_base + kValueWidth + 1u] = total;
  }
}
