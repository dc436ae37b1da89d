#include "reference/activation.h"

#include <cmath>
#include <numbers>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// Written so that exp never overflows.
double sigmoid(double x) {
  if (x >= 0) return 1.0 / (1.0 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1.0 + e);
}

// erfc keeps the relative accuracy of the left tail, where 1 + erf cancels.
double gelu(double x) {
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

double gelu_tanh(double x) {
  const double inner = std::sqrt(2.0) * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

}  // namespace

Result<ActivationKind> activation_from_name(std::string_view name) {
  if (name == "identity") return ActivationKind::kIdentity;
  if (name == "gelu") return ActivationKind::kGelu;
  if (name == "gelu_tanh") return ActivationKind::kGeluTanh;
  if (name == "quick_gelu") return ActivationKind::kQuickGelu;
  if (name == "silu") return ActivationKind::kSilu;
  if (name == "relu") return ActivationKind::kRelu;
  if (name == "tanh") return ActivationKind::kTanh;
  if (name == "sigmoid") return ActivationKind::kSigmoid;
  if (name == "elu_plus_one") return ActivationKind::kEluPlusOne;
  return invalid_argument(message({"[activation] The kind \"", name,
                                   "\" is unknown; use gelu, gelu_tanh, quick_gelu, silu, relu, "
                                   "tanh, sigmoid, elu_plus_one or identity."}));
}

double activate(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kGelu:
      return gelu(x);
    case ActivationKind::kGeluTanh:
      return gelu_tanh(x);
    case ActivationKind::kQuickGelu:
      return x * sigmoid(1.702 * x);
    case ActivationKind::kSilu:
      return x * sigmoid(x);
    case ActivationKind::kRelu:
      return x < 0 ? 0.0 : x;
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kSigmoid:
      return sigmoid(x);
    case ActivationKind::kEluPlusOne:
      return x > 0 ? x + 1.0 : std::exp(x);
  }
  return x;
}

Result<Array> activation(const Array& x, ActivationKind kind) {
  VKF_CHECK(check_array(x, "activation", "x"));
  Array y = x;
  for (double& value : y.data) value = activate(kind, value);
  return y;
}

}  // namespace vkformer::reference
