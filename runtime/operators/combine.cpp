#include "ops/combine.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// combine (Row-wise operators)
// attributes: `alpha`, `beta` (1); `most` (0: none)
// inputs:     A (...), B (...)
// outputs:    Y (...)
// computes:   alpha · A + beta · B, B limited to [-most, most]
Result<PreparedOperator> prepare_combine(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"A", "B"}, {"alpha", "beta", "most"}));
  CombineAttrs attrs;
  VKF_ASSIGN(attrs.alpha, arguments.number_or("alpha", 1.0));
  VKF_ASSIGN(attrs.beta, arguments.number_or("beta", 1.0));
  VKF_ASSIGN(attrs.most, arguments.number_or("most", 0.0));
  VKF_ASSIGN(Tensor a, arguments.floats("A"));
  VKF_ASSIGN(Tensor b, arguments.floats("B"));
  PreparedOperator op;
  const TensorId a_id = op.bind("A", std::move(a));
  const TensorId b_id = op.bind("B", std::move(b));
  VKF_ASSIGN(const TensorId y, add_combine(op.graph, a_id, b_id, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
