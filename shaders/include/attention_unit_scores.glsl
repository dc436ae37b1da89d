// needs: f16_range.glsl, online_softmax.glsl, score_terms.glsl, score_shape.glsl; the bindings of q
// and kv, kWidth, kValueWidth, kKeys, kPitchScores, `scores` in shared memory. From products of
// queries and keys to scores, and what matrix units omit because it is beyond f16.

// The products of a query and a key that the units omit.
float wide_products(uint q_row, uint k_row) {
  float sum = 0.0;
  for (uint e = 0u; e < kWidth; ++e) {
    const float x = q[q_row + e], k = kv[k_row + e];
    if (beyond_f16(x) || beyond_f16(k)) sum = fma(x, k, sum);
  }
  return sum;
}

// A score from its product; -inf where masked. place: batch item, head and query.
float finished(float product, uvec3 place, uint key) {
  if (key >= p.keys || !score_allowed(p.terms, place.x, place.y, place.z, key)) {
    return negative_infinity();
  }
  return soft_capped(product * p.scale) + score_bias(p.terms, place.x, place.y, place.z, key);
}

// The weighted values of a column that the units omit; `scores` has the weights.
float wide_weighted(uint row, uint column, uint base, uint tile) {
  float sum = 0.0;
  if (column >= kValueWidth) return sum;
  for (uint n = 0u; n < kKeys; ++n) {
    const float weight = scores[row * kPitchScores + n];
    if (is_masked_weight(weight)) continue;
    const float value = kv[base + (tile * kKeys + n) * p.v.row_stride + column];
    if (beyond_f16(value)) sum = fma(weight, value, sum);
  }
  return sum;
}
