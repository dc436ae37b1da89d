// activation: y = kind(x), element by element. x (..., D) -> y (..., D).
//
//   gelu         x/2 (1 + erf(x / sqrt 2))                          (Hendrycks and Gimpel, 2016)
//   gelu_tanh    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))      (ibid.)
//   quick_gelu   x sigmoid(1.702 x)                                 (ibid.)
//   silu         x sigmoid(x)                                       (Elfwing et al., 2017)
//   elu_plus_one x + 1 for x > 0, else exp(x)                       (Katharopoulos et al., 2020)
#pragma once

#include <string_view>

#include "ops/op.h"

namespace vkformer {

// The numbers that shaders/include/activation.glsl switches on.
enum class ActivationKind : uint32_t {
  kNone = 0,
  kRelu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kSilu = 4,
  kQuickGelu = 5,
  kTanh = 6,
  kSigmoid = 7,
  kEluPlusOne = 8,
};

// "none", "relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "tanh", "sigmoid", "elu_plus_one".
const char* activation_name(ActivationKind kind);
// The kind of that name; also by the names of Hugging Face configurations: "identity", "linear",
// "gelu_python", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_accurate", "swish".
Result<ActivationKind> activation_from_name(std::string_view name);

struct ActivationAttrs {
  ActivationKind kind = ActivationKind::kNone;
};

// The output's description, or why the input does not fit: x (..., D).
Result<TensorDesc> check_activation(const TensorDesc& x, ActivationAttrs attrs);

// Adds y = kind(x) to the graph and returns y (..., D).
Result<TensorId> add_activation(Graph& graph, TensorId x, ActivationAttrs attrs);

Status lower_activation(LowerContext& context, const Node& node);

}  // namespace vkformer
