// needs: a readonly storage block with `uint terms[]`; score_terms.h; VKF_TERM_HEADS, VKF_TERM_QUERIES
// and VKF_TERM_KEYS, expressions for H, T and S.
// Masks and biases of one score. b, h: batch and query head; i: query; j: key.

bool score_allowed(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  const int reach = int(i) + t.causal_offset;
  if ((t.flags & VKF_TERM_CAUSAL) != 0u && int(j) > reach) return false;
  if ((t.flags & VKF_TERM_WINDOW_LEFT) != 0u && int(j) < reach - t.window_left) return false;
  if ((t.flags & VKF_TERM_WINDOW_RIGHT) != 0u && int(j) > reach + t.window_right) return false;
  const uint row_words = (VKF_TERM_KEYS + 31u) >> 5u;
  const uint bit = 1u << (j & 31u);
  if (t.key_mask_offset != VKF_NO_TERM &&
      (terms[t.key_mask_offset + b * row_words + (j >> 5u)] & bit) == 0u) {
    return false;
  }
  if (t.mask_offset != VKF_NO_TERM) {
    const uint heads = (t.flags & VKF_TERM_MASK_ONE_HEAD) != 0u ? 1u : VKF_TERM_HEADS;
    const uint queries = (t.flags & VKF_TERM_MASK_ONE_QUERY) != 0u ? 1u : VKF_TERM_QUERIES;
    const uint bb = (t.flags & VKF_TERM_MASK_ONE_BATCH) != 0u ? 0u : b;
    const uint row = (bb * heads + (heads == 1u ? 0u : h)) * queries + (queries == 1u ? 0u : i);
    if ((terms[t.mask_offset + row * row_words + (j >> 5u)] & bit) == 0u) return false;
  }
  return true;
}

// What the distance from query to key adds: ALiBi or a table.
float distance_bias(ScoreTermsParams t, uint b, uint h, int i, int j) {
  int distance = j - i - t.causal_offset;
  if ((t.flags & VKF_TERM_DISTANCE) != 0u) {
    const int reach = int(terms[t.slopes_offset]);
    const int column = clamp(distance, -reach, reach) + reach;
    return uintBitsToFloat(terms[t.slopes_offset + 1u + h * uint(2 * reach + 1) + uint(column)]);
  }
  if ((t.flags & VKF_TERM_KEY_POSITIONS) != 0u) {
    const uint positions = t.slopes_offset + VKF_TERM_HEADS + b * VKF_TERM_KEYS;
    const int own = clamp(i + t.causal_offset, 0, int(VKF_TERM_KEYS) - 1);
    distance = int(terms[positions + uint(j)]) - int(terms[positions + uint(own)]);
  }
  return uintBitsToFloat(terms[t.slopes_offset + h]) * float(distance);
}

// The additive part: bias, ALiBi or a bias by distance, before the temperature.
float score_bias(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  float value = 0.0;
  if (t.bias_offset != VKF_NO_TERM) {
    const uint heads = (t.flags & VKF_TERM_BIAS_ONE_HEAD) != 0u ? 1u : VKF_TERM_HEADS;
    const uint queries = (t.flags & VKF_TERM_BIAS_ONE_QUERY) != 0u ? 1u : VKF_TERM_QUERIES;
    uint bb = (t.flags & VKF_TERM_BIAS_ONE_BATCH) != 0u ? 0u : b;
    uint values = t.bias_offset;
    if ((t.flags & VKF_TERM_BIAS_PERIODIC) != 0u) {
      bb = b % terms[values];
      ++values;
    }
    const uint row = (bb * heads + (heads == 1u ? 0u : h)) * queries + (queries == 1u ? 0u : i);
    value = uintBitsToFloat(terms[values + row * VKF_TERM_KEYS + j]);
  }
  if (t.slopes_offset != VKF_NO_TERM) value += distance_bias(t, b, h, int(i), int(j));
  return value;
}
