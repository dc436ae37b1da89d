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
  return unary_operator(arguments, add_log_softmax);
}

}  // namespace vkformer
