// needs: attention_tiled.comp: its push constants, tiles, registers and dot_rows.
// Positions by distance: scores of queries with rows of positions, and sums of their values.
#ifndef VKF_TILE_DISTANCES_GLSL
#define VKF_TILE_DISTANCES_GLSL

// score[r] = (q_r + c) . r_d for row 0's distance d.
void dot_distance(uint h, int distance) {
  for (uint r = 0u; r < kRows; ++r) score[r] = 0.0;
  dot_rows(relative_key(p.relative, VKF_TERM_HEADS, h, distance),
           relative_bias(p.relative, VKF_TERM_HEADS, h) + VKF_TERM_HEADS * kWidth);
}

// The same, each row with its own distance, for keys that follow each other. An invocation
// multiplies the row of its key's distance from query 0 with all queries. Query r of the key takes
// the product that the invocation r places before it made. It may have made that of the last tile.
void dot_shifted(uint h, int distance) {
  const uint lane = gl_LocalInvocationID.x;
  if (lane >= kLocalSize - kRows) {
    for (uint r = 0u; r < kRows; ++r)
      weight_tile[r * kPitch + lane - (kLocalSize - kRows)] = carried[r];
  }
  dot_distance(h, distance);
  for (uint r = 0u; r < kRows; ++r) {
    carried[r] = score[r];
    weight_tile[r * kPitch + kRows + lane] = score[r];
  }
  barrier();
  for (uint r = 0u; r < kRows; ++r) score[r] = weight_tile[r * kPitch + kRows + lane - r];
  barrier();
}

// The same for a key anywhere.
void dot_apart(uint h, int distance) {
  const uint bias = relative_bias(p.relative, VKF_TERM_HEADS, h) + VKF_TERM_HEADS * kWidth;
  for (uint r = 0u; r < kRows; ++r) {
    const uint base = relative_key(p.relative, VKF_TERM_HEADS, h, distance - int(r));
    float value = 0.0;
    for (uint e = 0u; e < kWidth; ++e) {
      const float c = kRelativeBiases ? kv[bias + e] : 0.0;
      value += (q_tile[r * kWidth + e] + c) * kv[base + e];
    }
    score[r] = value;
  }
}

// score[r] += k . u_d for the key that starts at `base`, each row with its own distance: the key is
// loaded once for all of them.
void dot_relative_queries(uint base, uint h, int distance) {
  uint rows[kRows];
  for (uint r = 0u; r < kRows; ++r) {
    rows[r] = relative_query(p.relative, VKF_TERM_HEADS, h, distance - int(r));
  }
  if (kQuads != 0u) {
    for (uint e = 0u; e < kWidth; e += 4u) {
      const vec4 k = kv_quads[(base + e) >> 2u];
      for (uint r = 0u; r < kRows; ++r) score[r] += dot(kv_quads[(rows[r] + e) >> 2u], k);
    }
  } else {
    for (uint e = 0u; e < kWidth; ++e) {
      const float k = kv[base + e];
      for (uint r = 0u; r < kRows; ++r) score[r] += kv[rows[r] + e] * k;
    }
  }
}

// score[r] += the product of the key that belongs to each row's distance.
void add_relative_products(uvec2 place, uint key, int distance) {
  const uint unit = place.x * VKF_TERM_HEADS + place.y;
  for (uint r = 0u; r < kRows; ++r) {
    score[r] +=
        kv[relative_product(p.relative, VKF_TERM_HEADS, unit, p.keys, key, distance - int(r))];
  }
}

// sum += weights times the rows of values by distance. Keys that follow each other share a row:
// query r reads the one of its key `begin + n + r - (kRows - 1)`.
void add_relative_values(uint h, uint begin, uint count, int first) {
  float value[kColumns];
  for (uint n = 0u; n < count + (kSparse != 0u ? 0u : kRows - 1u); ++n) {
    for (uint r = 0u; r < kRows; ++r) {
      if (kSparse != 0u || r == 0u) {
        const int distance =
            kSparse != 0u ? int(key_tile[n]) - int(r) : int(begin + n) - int(kRows - 1u);
        const uint row = relative_value(p.relative, VKF_TERM_HEADS, h, distance - first);
        for (uint c = 0u; c < kColumns; ++c) {
          value[c] = kv[row + min(gl_LocalInvocationID.x + c * kLocalSize, kValueWidth - 1u)];
        }
      }
      const uint key = kSparse != 0u ? n : n + r - (kRows - 1u);
      if (key >= count) continue;
      const float weight = weight_tile[r * kPitch + key];
      if (is_masked_weight(weight)) continue;
      for (uint c = 0u; c < kColumns; ++c) sum[r * kColumns + c] += weight * value[c];
    }
  }
}
#endif
