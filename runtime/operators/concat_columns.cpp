#include "ops/concat_columns.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// concat_columns (Row-wise operators)
// inputs:     A (..., Da), B (..., Db)
// outputs:    Y (..., Da + Db)
// computes:   every row of A followed by that of B
Result<PreparedOperator> prepare_concat_columns(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"A", "B"}, {}));
  VKF_ASSIGN(Tensor a, arguments.floats("A"));
  VKF_ASSIGN(Tensor b, arguments.floats("B"));
  PreparedOperator op;
  const TensorId a_id = op.bind("A", std::move(a));
  const TensorId b_id = op.bind("B", std::move(b));
  VKF_ASSIGN(const TensorId y, add_concat_columns(op.graph, a_id, b_id));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
