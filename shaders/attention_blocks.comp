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
const uint kRelative = 0u, kLengths = 0u, kQuadsOut = kQuads;

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
#include "sink_terms.glsl"
#define VKF_TILE_TEMPERATURE p.inverse_temperature
#define VKF_TILE_LOOP  // unrolled, so that loads are under way together
#include "attention_tiles.glsl"

uint first_query() { return gl_WorkGroupID.x * kRows; }
bool query_place(uint i, out uint place) {
  place = first_query() + i;
  return place < p.queries;
}
bool key_place(uint tile, uint i, out uint place) {
  place = tile * kKeys + i;
  return place < p.keys;
}

// Scale, terms and masks; -inf where a pair is masked or its key does not exist.
vec4 finished(vec4 products, uvec2 place, uint i, uint tile) {
  const uint key = tile * kKeys + 4u * key_lane();
  vec4 score;
  const uint bits = VKF_TERM_MAY(VKF_KIND_KEY_MASK | VKF_KIND_MASK) && key < p.keys
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

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint heads = VKF_TERM_HEADS;
  if (unit >= p.batch * heads) return;
  const uvec2 place = uvec2(unit / heads, unit % heads);
  const uint first = first_query();
  const uint kv_head = place.y / VKF_HEADS_PER_KV(p.heads);
  const uint k_base = p.k.offset + place.x * p.k.batch_stride + kv_head * p.k.head_stride;
  const uint v_base = p.v.offset + place.x * p.v.batch_stride + kv_head * p.v.head_stride;
  begin_rows(p.q.offset + place.x * p.q.batch_stride + place.y * p.q.head_stride, p.q.row_stride);
  begin_sink(sink_score(place.y));
  const uint last = min(first + kRows, p.queries) - 1u;
  const uvec2 keys = key_range(p.terms, first, last);
  for (uint tile = keys.x / kKeys; keys.x < keys.y && tile * kKeys < keys.y; ++tile) {
    vec4 score[kTileM];
    vec4 squares;
    multiply_tile(k_base, p.k.row_stride, tile, score, squares);
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      score[m] = finished(score[m], place, min(first + row_of(m), p.queries - 1u), tile);
    }
    add_tile(v_base, p.v.row_stride, tile, score);
  }
  share_totals();
  const uint y_base = place.x * p.y.batch_stride + place.y * p.y.head_stride;
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    const uint row = first + row_of(m);
    if (row <= last) write_row(y_base + row * p.y.row_stride, m);
  }
}
