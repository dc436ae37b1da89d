#include "ops/gather_rows.h"

#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

// The indices as U32; a negative one or one that is too large stands for no row.
Result<Tensor> row_indices(const OperatorArguments& arguments) {
  VKF_ASSIGN(const Tensor* given, arguments.require("indices"));
  auto values = given->to_ints();
  if (!values) return values.error().with_context("[gather_rows] input indices");
  Tensor narrowed = Tensor::zeros(DType::kU32, given->shape);
  for (size_t i = 0; i < values->size(); ++i) {
    const int64_t value = (*values)[i];
    const bool fits = value >= 0 && value < int64_t{UINT32_MAX};
    const uint32_t index = fits ? static_cast<uint32_t>(value) : UINT32_MAX;
    std::memcpy(narrowed.bytes.data() + 4 * i, &index, 4);
  }
  return narrowed;
}

}  // namespace

// gather_rows (Row-wise operators)
// inputs:     X (..., D), indices (...); optional addend (P, D)
// outputs:    Y (indices' shape, D)
// computes:   row n is X's row indices[n], zeros where there is none, plus addend[n mod P]; X's
//             leading dimensions count as one
Result<PreparedOperator> prepare_gather_rows(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "indices", "addend"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(Tensor indices, row_indices(arguments));
  PreparedOperator op;
  GatherRowsInputs inputs;
  inputs.x = op.bind("X", std::move(x));
  inputs.indices = op.bind("indices", std::move(indices));
  if (arguments.find("addend") != nullptr) {
    VKF_ASSIGN(Tensor addend, arguments.floats("addend"));
    inputs.addend = op.bind("addend", std::move(addend));
  }
  VKF_ASSIGN(const TensorId y, add_gather_rows(op.graph, inputs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
