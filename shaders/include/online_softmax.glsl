// needs: float_bits.glsl.
// Pieces of the online softmax (Milakov and Gimelshein, 2018), shared by the attention kernels.
// A running maximum starts at the lowest finite float, so that no difference is inf - inf. A masked
// pair carries a probability of -1 until it is used, because 0 times a NaN value would be NaN.
const float kLowestFloat = -3.402823466e38;
const float kMaskedWeight = -1.0;

bool is_masked_weight(float weight) { return floatBitsToUint(weight) == 0xbf800000u; }

// The larger one; a NaN never wins (it reaches the result through the sum).
float keep_max(float highest, float score) {
  return !is_nan(score) && score > highest ? score : highest;
}

// exp((score - highest) / temperature), or the mark of a masked pair.
float online_weight(float score, float highest, float inverse_temperature) {
  if (is_negative_infinity(score)) return kMaskedWeight;
  return exp_nonpositive((score - highest) * inverse_temperature);
}

// What a sum taken under maximum `before` is worth under `now`.
float online_fade(float before, float now, float inverse_temperature) {
  return exp_nonpositive((before - now) * inverse_temperature);
}

// Weighted sum over total weight; zero for a row without any allowed key. NaN totals give NaN.
float online_result(float sum, float total) {
  return floatBitsToUint(total) == 0u ? 0.0 : sum / total;
}
