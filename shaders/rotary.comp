#version 450
#extension GL_GOOGLE_include_directive : require
// computes: pairs (u, v) of the leading heads' columns become (u cos - v sin, v cos + u sin) of
//           their position's angles (Su et al., 2021, RoFormer); other columns are copied
// shapes:   X (R, W), Table (P, 2 pairs): cosines, then sines, Positions (at least R) -> Y (R, W)
// mapping:  one workgroup kHeadsPerGroup blocks of E columns of a row; blocks on z, rows on x and
//           y; an invocation takes every kLocalSize-th pair or column of a block
// bounds:   W, E and pairs <= E / 2 may be anything, the last block may be ragged; rows beyond the
//           last are skipped; a position beyond the table gives NaN; Positions may be unused
// requires: nothing (baseline)
// variants: rotary_row__f32_f32_f32
#include "rotary.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ROTARY_CONSTANTS)

#include "float_bits.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { RotaryParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Table { float table[]; };
layout(binding = 2) readonly buffer Positions { uint positions[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

// Of the head at x[from], to y[from].
void turn_pairs(uint from, bool exists, uint angles) {
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
    y[from + at] = turned.x;
    y[from + at + apart] = turned.y;
  }
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint known = kHasPositions != 0u ? positions[p.positions_at + row] : row % p.tokens;
  const uint position = known + p.position_offset;
  // A sum that wraps around is beyond the table too.
  const bool exists = position >= known && position < p.table_rows;
  for (uint h = 0u; h < kHeadsPerGroup; ++h) {
    const uint block = gl_WorkGroupID.z * kHeadsPerGroup + h;
    const uint first = block * p.head_width;
    if (first >= p.width) return;
    const uint from = row * p.width + first;
    uint copied = 0u;
    if (block < p.heads) {
      turn_pairs(from, exists, position * 2u * p.pairs);
      copied = 2u * p.pairs;
    }
    const uint last = min(p.head_width, p.width - first);
    for (uint i = copied + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
      y[from + i] = x[from + i];
    }
  }
}
