#include "ops/head_norm.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// head_norm (Row-wise operators)
// attributes: `eps` (1e-6), `first` (0), `centered` (false)
// inputs:     X (..., W), weight (G, E)
// outputs:    Y (..., W)
// computes:   head g is columns first + g·E … of a row: head / sqrt(mean(head²) + eps) · weight[g];
//             `centered` subtracts the head's mean first; other columns are copied
Result<PreparedOperator> prepare_head_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight"}, {"eps", "first", "centered"}));
  HeadNormAttrs attrs;
  VKF_ASSIGN(attrs.epsilon, arguments.number_or("eps", 1e-6));
  VKF_ASSIGN(const int64_t first, arguments.integer_or("first", 0, 0, INT32_MAX));
  attrs.first = static_cast<uint32_t>(first);
  VKF_ASSIGN(const bool centered, arguments.attributes().get_bool_or("centered", false));
  if (centered) attrs.kind = HeadNormAttrs::Kind::kCentered;
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(Tensor gain, arguments.floats("weight"));
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId gain_id = op.bind("weight", std::move(gain));
  VKF_ASSIGN(const TensorId y, add_head_norm(op.graph, x_id, gain_id, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
