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

// The additive part: bias and ALiBi, before the temperature.
float score_bias(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  float value = 0.0;
  if (t.bias_offset != VKF_NO_TERM) {
    const uint heads = (t.flags & VKF_TERM_BIAS_ONE_HEAD) != 0u ? 1u : VKF_TERM_HEADS;
    const uint queries = (t.flags & VKF_TERM_BIAS_ONE_QUERY) != 0u ? 1u : VKF_TERM_QUERIES;
    const uint bb = (t.flags & VKF_TERM_BIAS_ONE_BATCH) != 0u ? 0u : b;
    const uint row = (bb * heads + (heads == 1u ? 0u : h)) * queries + (queries == 1u ? 0u : i);
    value = uintBitsToFloat(terms[t.bias_offset + row * VKF_TERM_KEYS + j]);
  }
  if (t.slopes_offset != VKF_NO_TERM) {
    value += uintBitsToFloat(terms[t.slopes_offset + h]) * float(int(j) - int(i) - t.causal_offset);
  }
  return value;
}
