// needs: attention.h, float_bits.glsl, a storage block with `float kv[]`. Also kWidth and
// kValueWidth, E and Ev. Also kSoftcap, the bits of a float or 0, and kRelative, of VKF_RELATIVE_*.
// Where these constants are 0, nothing of this is left. What changes a score between the product
// q.k and its terms: relative positions, and a soft cap.
#include "activation.glsl"

// cap tanh(score / cap) (Gemma 2; Bello et al. 2016).
float soft_capped(float score) {
  if (kSoftcap == 0u || is_nan(score)) return score;
  const float cap = uintBitsToFloat(kSoftcap);
  return cap * tanh_any(score / cap);
}

const bool kRelativeBiases = (kRelative & VKF_RELATIVE_BIASES) != 0u;
const bool kRelativeQueries = (kRelative & VKF_RELATIVE_QUERIES) != 0u;
const bool kRelativeProducts = (kRelative & VKF_RELATIVE_PRODUCTS) != 0u;
const bool kRelativeValues = (kRelative & VKF_RELATIVE_VALUES) != 0u;

// Heads of the rows, and which one of them a head reads.
uint relative_heads(uint heads) { return (kRelative & VKF_RELATIVE_ONE_HEAD) != 0u ? 1u : heads; }

// d for a distance j - i - causal_offset.
uint relative_row(RelativeParams r, int distance) {
  const int reach = int(r.reach);
  return uint(clamp(distance, -reach, reach) + reach);
}

// Where the row of a head begins in kv.
uint relative_key(RelativeParams r, uint heads, uint h, int distance) {
  const uint rows = relative_heads(heads);
  return r.offset + (relative_row(r, distance) * rows + (rows == 1u ? 0u : h)) * kWidth;
}

// Where the row that a head's keys are multiplied with begins.
uint relative_query(RelativeParams r, uint heads, uint h, int distance) {
  return relative_key(r, heads, h, distance) + (2u * r.reach + 1u) * relative_heads(heads) * kWidth;
}

// Where a head's bias of the content begins; that of positions follows H E elements later.
uint relative_bias(RelativeParams r, uint heads, uint h) {
  const uint tables = kRelativeQueries ? 2u : 1u;
  return r.offset + (tables * (2u * r.reach + 1u) * relative_heads(heads) + h) * kWidth;
}

uint relative_value(RelativeParams r, uint heads, uint h, int distance) {
  const uint rows = relative_heads(heads);
  const uint begin = relative_bias(r, heads, 0u) + (kRelativeBiases ? 2u * heads * kWidth : 0u);
  return begin + (relative_row(r, distance) * rows + (rows == 1u ? 0u : h)) * kValueWidth;
}

// Where the product of key j of head h of item b lies; `unit` is b H + h.
uint relative_product(RelativeParams r, uint heads, uint unit, uint keys, uint j, int distance) {
  const uint distances = 2u * r.reach + 1u;
  const uint begin = relative_bias(r, heads, 0u) + (kRelativeBiases ? 2u * heads * kWidth : 0u);
  return begin + (unit * keys + j) * distances + relative_row(r, distance);
}
