#include "ops/rms_norm.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// rms_norm (Row-wise operators)
// attributes: `eps` (1e-6)
// inputs:     X (..., D); optional weight (D)
// outputs:    Y (..., D)
// computes:   X / sqrt(mean(X²) + eps) · weight
Result<PreparedOperator> prepare_rms_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight"}, {"eps"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-6));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const int64_t width, row_width(arguments, x));
  VKF_ASSIGN(const std::vector<float> gain, arguments.row_or("weight", width, 1.0f));
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId gain_id = op.bind("weight", Tensor::from_floats({width}, gain));
  VKF_ASSIGN(const TensorId y, add_rms_norm(op.graph, x_id, gain_id, {epsilon}));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
