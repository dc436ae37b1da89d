#include "ops/row_entropy.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// row_entropy (Row-wise operators)
// inputs:     X (..., S)
// outputs:    Y (...)
// computes:   −Σ X ln X with 0 ln 0 = 0, nats
Result<PreparedOperator> prepare_row_entropy(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  return unary_operator(arguments, add_row_entropy);
}

}  // namespace vkformer
