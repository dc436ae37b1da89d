// attention_weights: attention that also hands out what it looked at (Vaswani et al. 2017).
//
//   score_ij   = (scale q_i . k_j + slope_h (j - i - causal_offset) + bias_ij) / temperature
//   weights    = softmax of the scores over the allowed keys
//   output_i   = sum_j weights_ij v_j          entropy_i = - sum_j weights_ij ln weights_ij
//
// Query head h reads key/value head floor(h Hkv / H). A pair that is masked, or whose score is
// -inf, has weight 0 and its value is not read; a query without any other key gets output 0 and
// entropy 0. q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev), where Ev may differ from E.
// Needs: mask.
#pragma once

#include <optional>

#include "reference/mask.h"

namespace vkformer::reference {

struct AttentionOptions {
  std::optional<double> scale;  // absent: 1 / sqrt(E)
  double temperature = 1.0;     // divides the whole score; above 0
  MaskOptions masks;
  const Array* bias = nullptr;          // broadcast to (B, H, T, S); may hold -inf
  const Array* alibi_slopes = nullptr;  // (H); Press et al. 2021
};

struct AttentionOutputs {
  Array output;   // (B, H, T, Ev)
  Array weights;  // (B, H, T, S)
  Array entropy;  // (B, H, T), nats
  Array scores;   // (B, H, T, S), before the masks
};

// q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev).
Result<AttentionOutputs> attention_weights(const Array& q, const Array& k, const Array& v,
                                           const AttentionOptions& options = {});

}  // namespace vkformer::reference
