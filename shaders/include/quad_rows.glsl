// needs: score[], total[], sum[], q_tile[], weight_tile[], kRows, kPitch, kWidth and kLocalSize
// of attention_tiled.comp with kColumns 1, subgroups of 4.
// Rows handed round in a quad: lane l keeps in place r what belongs to row r ^ l. So one lane of
// the four loads a row of shared memory, and a swap brings it to the others.
#ifndef VKF_QUAD_ROWS_GLSL
#define VKF_QUAD_ROWS_GLSL
#extension GL_KHR_shader_subgroup_quad : require

uint row_of(uint r) { return r ^ (gl_SubgroupInvocationID & 3u); }

// What lane l ^ j has; j is literal.
vec4 of_neighbor(vec4 x, uint j) {
  if (j == 1u) return subgroupQuadSwapHorizontal(x);
  if (j == 2u) return subgroupQuadSwapVertical(x);
  if (j == 3u) return subgroupQuadSwapDiagonal(x);
  return x;
}

// into[r] += x . (four words of row_of(r) from `column` on), for the rows of a tile of that pitch.
#define VKF_ADD_ROWS(into, x, tile, pitch, column)                                              \
  [[unroll]] for (uint i = 0u; i < kRows; i += 4u) {                                            \
    const uint at = row_of(i) * (pitch) + (column);                                             \
    const vec4 mine = vec4(tile[at], tile[at + 1u], tile[at + 2u], tile[at + 3u]);              \
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {                                                 \
      const vec4 row = of_neighbor(mine, j);                                                    \
      [[unroll]] for (uint c = 0u; c < 4u; ++c) into[i + j] = fma((x)[c], row[c], into[i + j]); \
    }                                                                                           \
  }

// The largest scores of a quad, by row, to column gl_SubgroupID of weight_tile.
void store_highest() {
  [[unroll]] for (uint i = 0u; i < kRows; i += 4u) {
    float highest = keep_max(kLowestFloat, score[i]);
    highest = keep_max(highest, subgroupQuadSwapHorizontal(score[i + 1u]));
    highest = keep_max(highest, subgroupQuadSwapVertical(score[i + 2u]));
    highest = keep_max(highest, subgroupQuadSwapDiagonal(score[i + 3u]));
    weight_tile[row_of(i) * kPitch + gl_SubgroupID] = highest;
  }
}

// Sums of weights of all invocations, by row, to the first column of weight_tile.
void store_totals() {
  [[unroll]] for (uint i = 0u; i < kRows; i += 4u) {
    weight_tile[row_of(i) * kPitch + gl_SubgroupID] =
        total[i] + subgroupQuadSwapHorizontal(total[i + 1u]) +
        subgroupQuadSwapVertical(total[i + 2u]) + subgroupQuadSwapDiagonal(total[i + 3u]);
  }
  barrier();
  for (uint r = gl_LocalInvocationID.x; r < kRows; r += kLocalSize) {
    float weights = 0.0;
    for (uint n = 0u; n < gl_NumSubgroups; ++n) weights += weight_tile[r * kPitch + n];
    row_fade[r] = weights;
  }
  barrier();
}
#endif
