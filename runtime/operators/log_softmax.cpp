#include "ops/log_softmax.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// log_softmax (Row-wise operators)
// inputs:     X (..., V)
// outputs:    Y (..., V)
// computes:   X − max − ln Σ exp(X − max)
Result<PreparedOperator> prepare_log_softmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_log_softmax(op.graph, op.bind("X", std::move(x))));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
