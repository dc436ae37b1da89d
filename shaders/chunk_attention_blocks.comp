#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: attention of every chunk of a (sorted) row of tokens to itself and its neighbors,
//           cyclically over all rounds, in one pass (Kitaev, Kaiser and Levskaya 2020; online
//           softmax, Milakov and Gimelshein 2018; in tiles, Dao et al. 2022)
// shapes:   X: q, k (B, H, S, E) and v (B, H, S, Ev) by HeadLayouts, Order (B, H, R, S), Mask (B,
//           ceil(S/32)) words -> Y (B, H, R * S, Ev) by its HeadLayout; with several rounds each
//           row ends with its highest score and the sum of weights
// mapping:  a workgroup owns kRows queries of one chunk of one head and visits the keys of the
//           chunk and its neighbors by 32; an invocation has kTileM of the queries, of them 4 keys
//           of a tile and then every eighth four of value columns
// bounds:   every size may be anything; queries beyond a chunk and units beyond the last are
//           skipped; Order and Mask may be unused; kQuads needs E, Ev and every layout in multiples
//           of 4
// requires: kLocalSize is a multiple of 8, 32 or more, kStageKeys divides 32; shared memory as in
//           attention_blocks.cpp
// variants: chunk_attention_blocks__f32_none_f32
#include "lsh.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_CHUNK_ATTENTION_BLOCKS_CONSTANTS)
const uint kLengths = kShared, kQuadsOut = kStats != 0u ? 0u : kQuads;

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { ChunkAttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 0) readonly buffer Q4 { vec4 q4[]; };
layout(binding = 0) readonly buffer Kv { float kv[]; };
layout(binding = 0) readonly buffer Kv4 { vec4 kv4[]; };
layout(binding = 1) readonly buffer Order { uint order[]; };
layout(binding = 2) readonly buffer Mask { uint mask[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };

#define VKF_TILE_TEMPERATURE 1.0
// A load waits for its key_position, so that unrolling only adds instructions.
#define VKF_TILE_LOOP [[dont_unroll]]
#include "attention_tiles.glsl"

// Where the keys of a tile stand; kMasked with those that only the token itself sees, kNoKey after
// the last one.
const uint kMasked = 0x80000000u, kNoKey = 0xffffffffu;
shared uvec4 key_position[kKeys / 4u];

// What the library gives a token that looks at itself, which it does only without another key.
const float kOwnScore = -1e5;
const float kLengthEpsilon = 1e-6;  // of the mean square of a key

uint unit_index() { return gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine; }
uint groups_of_chunk() { return (p.chunk + kRows - 1u) / kRows; }
uint chunk_index() { return gl_WorkGroupID.x / groups_of_chunk(); }

uint position_of(uint place) {
  return kHasOrder != 0u ? order[unit_index() * p.rounds * p.tokens + place] : place % p.tokens;
}

// Queries beyond the chunk repeat its last one.
uint query_in_chunk(uint i) {
  return min(gl_WorkGroupID.x % groups_of_chunk() * kRows + i, p.chunk - 1u);
}

bool query_place(uint i, out uint place) {
  place = position_of(chunk_index() * p.chunk + query_in_chunk(i));
  return true;
}

bool key_place(uint tile, uint i, out uint place) {
  const uint at = key_position[i / 4u][i % 4u];
  place = at & ~kMasked;
  return at != kNoKey;
}

bool is_kept(uint position) {
  if (kHasMask == 0u) return true;
  const uint word = unit_index() / p.heads * ((p.tokens + 31u) >> 5u) + (position >> 5u);
  return (mask[word] & (1u << (position & 31u))) != 0u;
}

// The keys of a tile; those of all neighbors lie one after the other. Others have read key_position
// of the tile before: a barrier follows their staging of its values.
void find_keys(uint tile) {
  const uint i = gl_LocalInvocationID.x;
  if (i >= kKeys) return;
  const uint key = tile * kKeys + i;
  const uint which = key / p.chunk;  // of the neighbors
  const int chunks = int(p.rounds * p.tokens / p.chunk);
  const int distance = int(which) - int(p.before);
  // As the library rolls chunks: a distance that there is not even room for counts as none.
  int neighbor = int(chunk_index()) + (abs(distance) < chunks ? distance : 0);
  if (neighbor < 0) neighbor += chunks;
  if (neighbor >= chunks) neighbor -= chunks;
  uint position = kNoKey;
  if (which <= p.before + p.after) {
    position = position_of((uint(neighbor) - which) * p.chunk + key);
    if (!is_kept(position)) position |= kMasked;
  }
  key_position[i / 4u][i % 4u] = position;
}

// Products to scores: scaled, the lengths of keys taken off where these are queries; -inf where a
// query does not see a key.
vec4 finished(vec4 products, vec4 scale, uvec4 keys, uint own) {
  const uint last = p.causal != 0u ? own : kMasked - 1u;  // of the keys that it sees
  vec4 score = mix(vec4(negative_infinity()), products * scale, lessThanEqual(keys, uvec4(last)));
  if (kShared != 0u) { score = mix(score, vec4(kOwnScore), equal(keys & ~kMasked, uvec4(own))); }
  return score;
}

void main() {
  // y and z fold the heads of all batch items.
  const uint unit = unit_index();
  if (unit >= p.batch * p.heads) return;
  const uint batch = unit / p.heads;
  const uint head = unit % p.heads;
  begin_rows(p.q.offset + batch * p.q.batch_stride + head * p.q.head_stride, p.q.row_stride);
  uint own[kTileM];
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) query_place(row_of(m), own[m]);
  const uint k_base = p.k.offset + batch * p.k.batch_stride + head * p.k.head_stride;
  const uint v_base = p.v.offset + batch * p.v.batch_stride + head * p.v.head_stride;
  for (uint tile = 0u; tile * kKeys < (p.before + 1u + p.after) * p.chunk; ++tile) {
    find_keys(tile);
    vec4 score[kTileM];
    vec4 squares;
    multiply_tile(k_base, p.k.row_stride, tile, score, squares);
    vec4 scale = vec4(p.scale);
    if (kShared != 0u) scale /= sqrt(squares / float(kWidth) + kLengthEpsilon);
    const uvec4 keys = key_position[key_lane()];
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) score[m] =
        finished(score[m], scale, keys, own[m]);
    add_tile(v_base, p.v.row_stride, tile, score);
  }
  share_totals();
  const uint y_base = p.y.offset + batch * p.y.batch_stride + head * p.y.head_stride;
  const uint round_base = chunk_index() * p.chunk / p.tokens * p.tokens;
  const uint first = gl_WorkGroupID.x % groups_of_chunk() * kRows;
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    if (first + row_of(m) >= p.chunk) continue;
    const uint row = y_base + (round_base + own[m]) * p.y.row_stride;
    write_row(row, m);
    if (kStats != 0u && key_lane() == 0u) {
      y[row + kValueWidth] = highest[m];
      y[row + kValueWidth + 1u] = total_of(m);
    }
  }
}
