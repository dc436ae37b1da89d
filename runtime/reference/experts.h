// experts: the feed-forward layers that rows have chosen, weighted and added up (Shazeer et al.,
// 2017).
//
//   y_r = scale * sum over k of w_rk (act(x_r U_e + b_e) D_e + c_e), e = experts_rk
//
// With gates a pair of columns 2i and 2i + 1 of U becomes act(z_2i) z_2i+1. With a limit l it
// becomes act(min(z_2i, l)) (1 + clamp(z_2i+1, -l, l)) (OpenAI, 2025, gpt-oss). Needs: Array,
// activation.
#pragma once

#include "reference/activation.h"

namespace vkformer::reference {

struct ExpertMatrices {
  Array up;         // (X, D, N)
  Array up_bias;    // (X, N), or empty
  Array down;       // (X, F, D)
  Array down_bias;  // (X, D), or empty
};

struct ExpertsOptions {
  ActivationKind activation = ActivationKind::kSilu;
  bool gate = true;
  double gate_limit = 0;  // 0: none
  double scale = 1;
};

// x (R, D), experts and weights (R, K) -> (R, D). An error if shapes do not fit.
Result<Array> experts(const Array& x, const Array& chosen, const Array& weights,
                      const ExpertMatrices& matrices, const ExpertsOptions& options);

}  // namespace vkformer::reference
