// matmul: Y = act(alpha op(A) op(B) + beta C + bias) + residual.
//
//   A (..., M, K), or (..., K, M) with trans_a      B (..., K, N), or (..., N, K) with trans_b
//   C and residual broadcast to Y, bias (N)         Y (..., M, N)
// Leading axes are batch axes; where one operand lacks them, or has 1, it is used for every batch.
// Needs: activation.
#pragma once

#include "reference/activation.h"

namespace vkformer::reference {

struct MatmulOptions {
  bool trans_a = false;
  bool trans_b = false;
  double alpha = 1.0;
  double beta = 1.0;
  ActivationKind activation = ActivationKind::kIdentity;
  const Array* c = nullptr;         // broadcast to (..., M, N), so also (N)
  const Array* bias = nullptr;      // (N)
  const Array* residual = nullptr;  // broadcast to (..., M, N); added after the activation
};

// a (..., M, K), b (..., K, N) -> (..., M, N).
Result<Array> matmul(const Array& a, const Array& b, const MatmulOptions& options = {});

}  // namespace vkformer::reference
