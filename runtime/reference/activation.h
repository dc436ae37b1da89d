// activation: y = kind(x), element by element. x (..., D) -> y (..., D).
//
//   gelu         x Phi(x) = x/2 (1 + erf(x / sqrt 2))                        (Hendrycks, Gimpel
//   2016) gelu_tanh    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))               (ibid.)
//   quick_gelu   x sigmoid(1.702 x)                                          (ibid.)
//   silu         x sigmoid(x)                                  (Elfwing et al. 2017; Swish, 2017)
//   relu         max(x, 0); NaN stays NaN
//   elu_plus_one x + 1 for x > 0, exp(x) otherwise      (Katharopoulos et al. 2020, feature map
//   phi)
// Needs: Array.
#pragma once

#include <string_view>

#include "reference/array.h"

namespace vkformer::reference {

enum class ActivationKind : uint8_t {
  kIdentity,
  kGelu,
  kGeluTanh,
  kQuickGelu,
  kSilu,
  kRelu,
  kTanh,
  kSigmoid,
  kEluPlusOne,
};

// "gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "tanh", "sigmoid", "elu_plus_one", "identity".
Result<ActivationKind> activation_from_name(std::string_view name);

// The value for one number.
double activate(ActivationKind kind, double x);

// x (..., D) -> (..., D).
Result<Array> activation(const Array& x, ActivationKind kind);

}  // namespace vkformer::reference
