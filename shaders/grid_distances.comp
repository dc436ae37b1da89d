#version 450
#extension GL_GOOGLE_include_directive : require
// computes: queries with their products with the distances to all rows and columns of a grid, keys
//           with where they stand, and values (Li et al., 2022)
// shapes:   QKV (B, H * W, 3 * heads * E), Table (2 H - 1 + 2 W - 1, E) -> Y (B, H * W, heads * (3
//           E + 2 H + 2 W))
// mapping:  one workgroup a token; an invocation takes every kLocalSize-th column of Y
// bounds:   every size may be anything; tokens beyond the last are skipped
// requires: nothing (baseline)
// variants: grid_distances_row__f32_none_f32
#include "grid_distances.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { GridDistancesParams p; };
layout(binding = 0) readonly buffer QKV { float qkv[]; };
layout(binding = 1) readonly buffer Table { float table[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

// The row of the table that is for the distance to row or column `at`, counted on, of a grid.
uint distance_row(uint token, uint at) {
  if (at < p.height) return token / p.width + p.height - 1u - at;
  return 2u * p.height - 1u + token % p.width + p.width - 1u - (at - p.height);
}

float product(uint q, uint row) {
  float sum = 0.0;
  for (uint i = 0u; i < p.head_width; ++i) sum += qkv[q + i] * table[row * p.head_width + i];
  return sum;
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint token = row % (p.height * p.width);
  const uint inner = p.heads * p.head_width;
  const uint wide = p.head_width + p.height + p.width;
  const uint base = row * 3u * inner;
  for (uint c = gl_LocalInvocationID.x; c < p.columns; c += kLocalSize) {
    const uint part = c / (p.heads * wide);  // 0: queries, 1: keys, 2: values
    float value;
    if (part > 1u) {
      value = qkv[base + 2u * inner + c - 2u * p.heads * wide];
    } else {
      const uint of_head = c % (p.heads * wide);
      const uint head = of_head / wide, i = of_head % wide;
      const uint from = base + part * inner + head * p.head_width;
      const uint at = i - p.head_width;  // a row of the grid, or a column after all rows
      if (i < p.head_width) {
        value = qkv[from + i] * (part == 0u ? p.scale : 1.0);
      } else if (part == 0u) {
        value = product(from, distance_row(token, at));
      } else {
        const uint own = at < p.height ? token / p.width : token % p.width + p.height;
        value = at == own ? 1.0 : 0.0;
      }
    }
    y[row * p.columns + c] = value;
  }
}
