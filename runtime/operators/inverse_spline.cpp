#include "ops/inverse_spline.h"

#include <limits>

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// inverse_spline (Row-wise operators)
// attributes: `bins` K (10), `bound` (5)
// inputs:     X (...), params (..., 3K - 1)
// outputs:    Y (...)
// computes:   inverse of a monotonic rational quadratic spline of K bins on [-bound, bound]
Result<PreparedOperator> prepare_inverse_spline(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "params"}, {"bins", "bound"}));
  InverseSplineAttrs attrs;
  VKF_ASSIGN(const int64_t bins, arguments.attributes().get_int_or("bins", 10));
  attrs.bins = bins < 0 || bins > std::numeric_limits<uint16_t>::max()
                   ? std::numeric_limits<uint32_t>::max()
                   : static_cast<uint32_t>(bins);
  VKF_ASSIGN(attrs.bound, arguments.number_or("bound", 5.0));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(Tensor params, arguments.floats("params"));
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId params_id = op.bind("params", std::move(params));
  VKF_ASSIGN(const TensorId y, add_inverse_spline(op.graph, x_id, params_id, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
