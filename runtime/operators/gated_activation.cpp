#include "ops/gated_activation.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// gated_activation (Row-wise operators)
// attributes: `kind`, `up` (none)
// inputs:     X (..., 2F)
// outputs:    Y (..., F)
// computes:   kind(first half) · up(second half)
Result<PreparedOperator> prepare_gated_activation(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"kind", "up"}));
  VKF_ASSIGN(const std::string name, arguments.attributes().get_string("kind"));
  VKF_ASSIGN(const ActivationKind kind, activation_from_name(name));
  VKF_ASSIGN(const std::string second, arguments.attributes().get_string_or("up", "none"));
  VKF_ASSIGN(const ActivationKind up, activation_from_name(second));
  return unary_operator(arguments, [=](Graph& graph, TensorId x) {
    return add_gated_activation(graph, x, {.kind = kind, .up = up});
  });
}

}  // namespace vkformer
