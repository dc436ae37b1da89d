// needs: kLocalSize, kWidth, kValueWidth, kTileM, kStageDepth, kStageKeys, kQuads, kQuadsOut (Y by
//        fours), kLengths (1: the lengths of keys are wanted), q[], q4[], kv[], kv4[], y[], y4[],
//        VKF_TILE_TEMPERATURE (1 / temperature), VKF_TILE_LOOP (an attribute of the loops that load
//        keys and values, or nothing), float_bits.glsl, online_softmax.glsl; defined later,
//        query_place and key_place.
// Attention in one pass over tiles of kKeys keys. A workgroup has kRows queries of one head, in
// shared memory. An invocation has kTileM of them. Of these it has 4 keys of a tile and then every
// eighth four of value columns, all in registers. Keys and values come through shared memory.
#extension GL_EXT_control_flow_attributes : require

const uint kKeys = 32u;             // of a tile
const uint kKeyLanes = kKeys / 4u;  // invocations that share a query
const uint kRowLanes = kLocalSize / kKeyLanes;
const uint kRows = kRowLanes * kTileM;
const uint kDepth = (kWidth + 3) / 4;  // fours of E
const uint kColumns =
    ((kValueWidth + 3) / 4 + kKeyLanes - 1) / kKeyLanes;  // fours of Ev, of a lane
// Rows of shared memory in vectors; an odd number of them begins in other banks than its neighbors.
const uint kPitchQ = kDepth | 1u;
const uint kPitchK = kStageDepth | 1u;
const uint kPitchV = kColumns * kKeyLanes;
const uint kPitchWeights = kKeyLanes + 1u;
const uint kStageK = kKeys * kPitchK;
const uint kStageV = kStageKeys * kPitchV;
shared vec4 q_tile[kRows * kPitchQ];
shared vec4 stage[kStageK > kStageV ? kStageK : kStageV];  // of keys, then of their values
shared vec4 weights[kRows * kPitchWeights];                // of four neighboring keys each
shared vec4 of_lanes[kRows * 2u];  // the highest scores of a row's lanes; at the end their totals
// x: the last tile, from 1 on, in which a value is infinite or NaN. A vector as all here: after a
// single word NVK loads vectors by the word.
shared uvec4 wild_tile;

float highest[kTileM];
float total[kTileM];  // of this invocation's keys
vec4 sum[kTileM * kColumns];

// A masked pair weighs -0, which no exponential is: nothing to a sum, and yet told from a weight.
const uint kMaskedBits = 0x80000000u;

// Which row of queries is query i of the workgroup, which of keys and values key i of a tile; false
// where there is none.
bool query_place(uint i, out uint place);
bool key_place(uint tile, uint i, out uint place);

uint key_lane() { return gl_LocalInvocationID.x % kKeyLanes; }
uint row_of(uint m) { return gl_LocalInvocationID.x / kKeyLanes + m * kRowLanes; }

// Fours of a row of Kv that begins at `row`; zeros from element `width` on, which are not loaded:
// memory there may hold a NaN.
vec4 load_kv(uint row, uint four, uint width) {
  if (kQuads != 0u) return kv4[(row >> 2u) + four];
  vec4 v = vec4(0.0);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (4u * four + e < width) v[e] = kv[row + 4u * four + e];
  }
  return v;
}

// Queries to shared memory; nothing summed yet. A barrier must follow.
void begin_rows(uint base, uint row_stride) {
  [[dont_unroll]] for (uint n = gl_LocalInvocationID.x; n < kRows * kDepth; n += kLocalSize) {
    const uint i = n / kDepth, four = n % kDepth;
    uint place;
    const bool there = query_place(i, place);
    const uint row = base + place * row_stride;
    vec4 v = vec4(0.0);
    if (there) {
      if (kQuads != 0u) {
        v = q4[(row >> 2u) + four];
      } else {
        [[unroll]] for (uint e = 0u; e < 4u; ++e) {
          if (4u * four + e < kWidth) v[e] = q[row + 4u * four + e];
        }
      }
    }
    q_tile[i * kPitchQ + four] = v;
  }
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    highest[m] = kLowestFloat;
    total[m] = 0.0;
  }
  [[unroll]] for (uint n = 0u; n < kTileM * kColumns; ++n) sum[n] = vec4(0.0);
  if (gl_LocalInvocationID.x == 0u) wild_tile.x = 0u;
}

// After begin_rows: rows begin with the weight of a score without a value (sink_scores.glsl), which
// -inf is not.
void begin_sink(float score) {
  if (is_negative_infinity(score)) return;
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    highest[m] = score;
    total[m] = key_lane() == 0u ? 1.0 : 0.0;
  }
}

// Fours [begin, begin + kStageDepth) of the keys of a tile, key 4 n + i at row 8 i + n. So lanes
// that read four neighboring keys each read neighboring rows.
void stage_keys(uint base, uint row_stride, uint tile, uint begin) {
  const uint depth = min(kStageDepth, kDepth - begin);
  VKF_TILE_LOOP for (uint n = gl_LocalInvocationID.x; n < kKeys * kStageDepth; n += kLocalSize) {
    const uint i = n / kStageDepth, four = n % kStageDepth;
    uint place;
    const bool there = key_place(tile, i, place);
    if (four >= depth) continue;
    vec4 v = vec4(0.0);
    if (there) v = load_kv(base + place * row_stride, begin + four, kWidth);
    stage[(i % 4u * kKeyLanes + i / 4u) * kPitchK + four] = v;
  }
}

// Values of the keys [begin, begin + kStageKeys) of a tile.
void stage_values(uint base, uint row_stride, uint tile, uint begin) {
  const uint depth = (kValueWidth + 3u) / 4u;
  uint top = 0u;
  VKF_TILE_LOOP for (uint n = gl_LocalInvocationID.x; n < kStageV; n += kLocalSize) {
    const uint four = n % kPitchV;
    uint place;
    const bool there = key_place(tile, begin + n / kPitchV, place);
    vec4 v = vec4(0.0);
    if (there && four < depth) v = load_kv(base + place * row_stride, four, kValueWidth);
    const uvec4 bits = floatBitsToUint(v) & 0x7fffffffu;
    top = max(max(top, max(bits.x, bits.y)), max(bits.z, bits.w));
    stage[n] = v;
  }
  if (top >= 0x7f800000u) atomicMax(wild_tile.x, tile + 1u);
}

// score += q k^T of this invocation's queries and keys, squares += those of the keys.
void multiply_keys(uint begin, inout vec4 score[kTileM], inout vec4 squares) {
  const uint depth = min(kStageDepth, kDepth - begin);
  [[dont_unroll]] for (uint e = 0u; e < depth; ++e) {
    vec4 k[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      k[i] = stage[(i * kKeyLanes + key_lane()) * kPitchK + e];
      if (kLengths != 0u) squares[i] += dot(k[i], k[i]);
    }
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      const vec4 x = q_tile[row_of(m) * kPitchQ + begin + e];
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        score[m][i] = fma(x.x, k[i].x, score[m][i]);
        score[m][i] = fma(x.y, k[i].y, score[m][i]);
        score[m][i] = fma(x.z, k[i].z, score[m][i]);
        score[m][i] = fma(x.w, k[i].w, score[m][i]);
      }
    }
  }
}

// The products of a tile of this invocation's queries and keys, and the squared lengths of its
// keys.
void multiply_tile(uint base, uint row_stride, uint tile, out vec4 score[kTileM],
                   out vec4 squares) {
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) score[m] = vec4(0.0);
  squares = vec4(0.0);
  for (uint begin = 0u; begin < kDepth; begin += kStageDepth) {
    barrier();
    stage_keys(base, row_stride, tile, begin);
    barrier();
    multiply_keys(begin, score, squares);
  }
}

float highest_of(float now, vec4 v) {
  return keep_max(keep_max(keep_max(keep_max(now, v.x), v.y), v.z), v.w);
}

float weight_of(float score, float now) {
  const float weight = exp_nonpositive((score - now) * VKF_TILE_TEMPERATURE);
  return is_negative_infinity(score) ? uintBitsToFloat(kMaskedBits) : weight;
}

// Scores to weights, by the highest scores of all lanes; sums and totals to what they are worth
// now.
void weigh(vec4 score[kTileM]) {
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    const uint row = row_of(m);
    const float now =
        highest_of(highest_of(highest[m], of_lanes[2u * row]), of_lanes[2u * row + 1u]);
    const float fade = online_fade(highest[m], now, VKF_TILE_TEMPERATURE);
    highest[m] = now;
    vec4 weight;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) weight[i] = weight_of(score[m][i], now);
    weights[row * kPitchWeights + key_lane()] = weight;
    total[m] = total[m] * fade + ((weight.x + weight.y) + (weight.z + weight.w));
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) sum[m * kColumns + c] *= fade;
  }
}

// sum += weights times the values of the keys [begin, begin + kStageKeys) of a tile.
void add_values(uint begin) {
  [[dont_unroll]] for (uint n = 0u; n < kStageKeys; n += 4u) {
    vec4 weight[kTileM];
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      weight[m] = weights[row_of(m) * kPitchWeights + (begin + n) / 4u];
    }
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      vec4 value[4];
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        value[i] = stage[(n + i) * kPitchV + c * kKeyLanes + key_lane()];
      }
      [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          const uint at = m * kColumns + c;
          sum[at] = fma(vec4(weight[m][i]), value[i], sum[at]);
        }
      }
    }
  }
}

// The same where values are infinite or NaN: 0 times one would be NaN, so masked pairs are omitted.
void add_wild_values(uint begin) {
  [[dont_unroll]] for (uint n = 0u; n < kStageKeys; ++n) {
    [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
      const uint key = begin + n;
      const float weight = weights[row_of(m) * kPitchWeights + key / 4u][key % 4u];
      if (floatBitsToUint(weight) == kMaskedBits) continue;
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        const vec4 value = stage[n * kPitchV + c * kKeyLanes + key_lane()];
        sum[m * kColumns + c] = fma(vec4(weight), value, sum[m * kColumns + c]);
      }
    }
  }
}

// What a tile adds by its finished scores, -inf where a pair is masked or its key does not exist.
void add_tile(uint base, uint row_stride, uint tile, vec4 score[kTileM]) {
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    of_lanes[2u * row_of(m) + key_lane() / 4u][key_lane() % 4u] =
        highest_of(kLowestFloat, score[m]);
  }
  barrier();
  weigh(score);
  for (uint begin = 0u; begin < kKeys; begin += kStageKeys) {
    if (begin != 0u) barrier();
    stage_values(base, row_stride, tile, begin);
    barrier();
    if (wild_tile.x == tile + 1u) {
      add_wild_values(begin);
    } else {
      add_values(begin);
    }
  }
}

// After the last tile: every lane's totals, for total_of.
void share_totals() {
  barrier();
  [[unroll]] for (uint m = 0u; m < kTileM; ++m) {
    of_lanes[2u * row_of(m) + key_lane() / 4u][key_lane() % 4u] = total[m];
  }
  barrier();
}

float total_of(uint m) {
  return dot(of_lanes[2u * row_of(m)], vec4(1.0)) + dot(of_lanes[2u * row_of(m) + 1u], vec4(1.0));
}

// This invocation's columns of the row of Y that begins at `row`.
void write_row(uint row, uint m) {
  const float all = total_of(m);
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
    const uint column = 4u * (c * kKeyLanes + key_lane());
    if (column >= kValueWidth) continue;
    vec4 result;
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      result[e] = online_result(sum[m * kColumns + c][e], all);
    }
    if (kQuadsOut != 0u) {
      y4[(row + column) >> 2u] = result;
      continue;
    }
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      if (kValueWidth % 4u == 0u || column + e < kValueWidth) y[row + column + e] = result[e];
    }
  }
}
