#include "ops/layer_norm.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// layer_norm (Row-wise operators)
// attributes: `eps` (1e-5)
// inputs:     X (..., D); optional weight (D), bias (D), residual (..., D)
// outputs:    Y (..., D)
// computes:   h = X + residual; (h − mean) / sqrt(variance + eps) · weight + bias
Result<PreparedOperator> prepare_layer_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight", "bias", "residual"}, {"eps"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-5));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const int64_t width, row_width(arguments, x));
  VKF_ASSIGN(Tensor gain_bias, arguments.gain_bias("weight", "bias", width));
  PreparedOperator op;
  LayerNormInputs inputs;
  inputs.x = op.bind("X", std::move(x));
  inputs.gain_bias = op.bind("gain_bias", std::move(gain_bias));
  if (arguments.find("residual") != nullptr) {
    VKF_ASSIGN(Tensor residual, arguments.floats("residual"));
    inputs.residual = op.bind("residual", std::move(residual));
  }
  VKF_ASSIGN(const TensorId y, add_layer_norm(op.graph, inputs, {epsilon}));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
