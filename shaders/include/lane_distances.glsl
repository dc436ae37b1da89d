// needs: dot_keys, score, shared_part, offset_bias and what they need (attention_lanes.comp).
// Relative positions where lanes hold queries. offset_bias is the bias of positions less that of
// the content, this lane's columns of each chunk, zeros beyond E. shared_part is its product with a
// row.
float delayed[kQueries * kDelayed +
              1];  // (kQueries, kDelayed): q . r of the last distances, newest first

// delayed[r] begins with (q_r + c) . r_d for the distance from the group's first query to a key.
// All lanes multiply one row: the query n places after the first takes that product n keys later.
void push_distance(uvec2 place, int distance) {
  key_row[0] = relative_key(p.relative, VKF_TERM_HEADS, place.y, distance);
  dot_keys();
  if (kRelativeBiases) shared_part = subgroupAdd(shared_part);
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    [[unroll]] for (uint n = 1u; n < kDelayed; ++n) {
      delayed[(r + 1u) * kDelayed - n] = delayed[(r + 1u) * kDelayed - n - 1u];
    }
    delayed[r * kDelayed] = score[r] + shared_part;
  }
}

// score[r] += the product that belongs to the key of the last pushed distance.
void add_distances() {
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    float value = 0.0;
    [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
      value = n == gl_LocalInvocationID.x ? delayed[r * kDelayed + r * kLocalSize + n] : value;
    }
    score[r] += value;
  }
}

// score += the products of the keys that belong to each query's distance.
void add_products(uvec2 place, uint first, uvec3 keys[kKeys]) {
  const uint unit = place.x * VKF_TERM_HEADS + place.y;
  [[unroll]] for (uint r = 0u; r < kQueries; ++r) {
    const int query = int(min(first + r * kLocalSize, p.queries - 1u)) + p.terms.causal_offset;
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      score[j * kQueries + r] += kv[relative_product(p.relative, VKF_TERM_HEADS, unit, p.keys,
                                                     keys[j].x, int(keys[j].x) - query)];
    }
  }
}

// Adds the bias of the content to the queries and keeps what that of positions has more.
void add_biases(uint h) {
  const uint bias = relative_bias(p.relative, VKF_TERM_HEADS, h);
  [[unroll]] for (uint c = 0u; c < kChunks; ++c) {
    const uint begin = run_begin(c, kWidth);
    load_run(bias + begin);
    [[unroll]] for (uint i = 0u; i < kRun; ++i) run[i] = loaded[i];
    [[unroll]] for (uint n = 0u; n < kSpan; ++n) {
      if (c * kSpan + n < kWidth) {
        const float element = subgroupShuffle(run[n % kRun], n / kRun);
        [[unroll]] for (uint r = 0u; r < kQueries; ++r) query[r * kWidth + c * kSpan + n] +=
            element;
      }
    }
    load_run(bias + VKF_TERM_HEADS * kWidth + begin);
    const bool inside = c * kSpan + gl_SubgroupInvocationID * kRun < kWidth;
    [[unroll]] for (uint i = 0u; i < kRun; ++i) {
      offset_bias[c * kRun + i] = inside ? loaded[i] - run[i] : 0.0;
    }
  }
}
