// linear_attention: attention by products of features, with every weight written out.
//
//   y_i = sum_j w_ij v_j / (sum_j w_ij + epsilon), w_ij = f(q_i) . f(k_j); causal: j <= i
//   elu (no omega):  f(x) = x + 1 for x > 0, exp(x) otherwise    (Katharopoulos et al. 2020)
//   favor (omega):   f(x) = (exp(w x' - |x'|^2 / 2 - c) + kernel_eps) / sqrt(m), x' = x E^(-1/4),
//                    w the m rows of omega                       (Choromanski et al. 2021)
//
// c of a query is the maximum of w x' over its features. c of keys is that over all features and
// kept keys of the head. A masked key has no weight and is not read. A query whose denominator is
// zero gives zeros. Needs: array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct LinearAttentionOptions {
  const Array* omega = nullptr;     // (m, E): favor; null: elu
  const Array* key_mask = nullptr;  // (B, S), 0 = masked
  double kernel_eps = 0;
  double epsilon = 0;  // added to the denominator
  bool causal = false;
};

struct LinearAttentionOutputs {
  Array output;   // (B, H, T, Ev)
  Array weights;  // (B, H, T, S): w_ij / (sum_j w_ij + epsilon)
};

// q (B, H, T, E), k (B, H, S, E), v (B, H, S, Ev).
Result<LinearAttentionOutputs> linear_attention(const Array& q, const Array& k, const Array& v,
                                                const LinearAttentionOptions& options = {});

}  // namespace vkformer::reference
