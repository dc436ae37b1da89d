#include "ops/argmax.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

Result<TensorMap> widen_indices(TensorMap outputs) {
  Tensor& y = outputs["Y"];
  y = index_tensor(tensor_words(y), y.shape);
  return outputs;
}

}  // namespace

// argmax (Tokens and positions)
// inputs:     X (..., V)
// outputs:    Y (...), I64
// computes:   index of the largest element, the first on ties
Result<PreparedOperator> prepare_argmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  VKF_ASSIGN(PreparedOperator op, unary_operator(arguments, add_argmax));
  op.finish = widen_indices;
  return op;
}

}  // namespace vkformer
