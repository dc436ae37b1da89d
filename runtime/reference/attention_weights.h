// attention_weights: attention that also hands out what it looked at (Vaswani et al. 2017).
//
//   raw_ij     = scale ((q_i + a_h) . k_j + (q_i + c_h) . r_h[d])      capped = cap tanh(raw / cap)
//   score_ij   = (capped_ij + slope_h (j - i - causal_offset) + bias_ij) / temperature
//   weights    = softmax of the scores over the allowed keys
//   output_i   = sum_j weights_ij (v_j + w_h[d])
//   d          = clamp(j - i - causal_offset, -R, R) + R               entropy_i = - sum_j
//   weights_ij ln weights_ij
//
// Query head h reads key/value head floor(h Hkv / H). A pair that is masked, or whose score is
// -inf, has weight 0 and its value is not read. A query without any other key gets output 0 and
// entropy 0. q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev), where Ev may differ from E.
// Needs: mask.
#pragma once

#include <optional>

#include "reference/mask.h"

namespace vkformer::reference {

// Relative positions (Shaw et al. 2018; Dai et al. 2019; He et al. 2021); absent parts count as
// zeros.
struct RelativeOptions {
  const Array* keys = nullptr;           // r, (2R + 1, E) or (2R + 1, H, E)
  const Array* queries = nullptr;        // u, (2R + 1, E) or (2R + 1, H, E)
  const Array* products = nullptr;       // s, (B, H, S, 2R + 1)
  const Array* values = nullptr;         // w, (2R + 1, Ev) or (2R + 1, H, Ev)
  const Array* content_bias = nullptr;   // a, (H, E)
  const Array* position_bias = nullptr;  // c, (H, E)

  bool any() const {
    return keys != nullptr || queries != nullptr || products != nullptr || content_bias != nullptr;
  }
};

struct AttentionOptions {
  std::optional<double> scale;  // absent: 1 / sqrt(E)
  double temperature = 1.0;     // divides the whole score; above 0
  MaskOptions masks;
  const Array* bias = nullptr;          // broadcast to (B, H, T, S); may hold -inf
  const Array* alibi_slopes = nullptr;  // (H); Press et al. 2021
  double softcap = 0.0;                 // cap; 0: none
  // (H): a score that joins each softmax as one more column without a value (OpenAI, 2025, gpt-oss)
  const Array* sink_scores = nullptr;
  RelativeOptions relative = {};
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
