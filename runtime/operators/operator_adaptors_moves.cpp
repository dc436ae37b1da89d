// Adaptors of the operators that move, join and mix rows, and of mu_law.
#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/mu_law.h"

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

Result<PreparedOperator> prepare_combine(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"A", "B"}, {"alpha", "beta"}));
  CombineAttrs attrs;
  VKF_ASSIGN(attrs.alpha, arguments.number_or("alpha", 1.0));
  VKF_ASSIGN(attrs.beta, arguments.number_or("beta", 1.0));
  VKF_ASSIGN(Tensor a, arguments.floats("A"));
  VKF_ASSIGN(Tensor b, arguments.floats("B"));
  PreparedOperator op;
  const TensorId a_id = op.bind("A", std::move(a));
  const TensorId b_id = op.bind("B", std::move(b));
  VKF_ASSIGN(const TensorId y, add_combine(op.graph, a_id, b_id, attrs));
  op.name_output(y, "Y");
  return op;
}

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

Result<PreparedOperator> prepare_mu_law(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"mu", "M", "num_bins"}));
  MuLaw law;
  VKF_ASSIGN(law.mu, arguments.attributes().get_double_or("mu", law.mu));
  VKF_ASSIGN(law.m, arguments.attributes().get_double_or("M", law.m));
  VKF_ASSIGN(law.bins, arguments.attributes().get_int_or("num_bins", law.bins));
  VKF_CHECK(check_mu_law(law));
  VKF_ASSIGN(const Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const std::vector<float> values, x.to_floats());
  std::vector<float> encoded;
  std::vector<float> decoded;
  std::vector<int64_t> bins;
  for (const float value : values) {
    const double wide = mu_law_encode(static_cast<double>(value), law);
    encoded.push_back(static_cast<float>(wide));
    bins.push_back(mu_law_bin(wide, law));
    decoded.push_back(static_cast<float>(mu_law_decode(bins.back(), law)));
  }
  PreparedOperator op;
  op.ready.emplace("encoded", Tensor::from_floats(x.shape, encoded));
  op.ready.emplace("bins", Tensor::from_ints(x.shape, bins));
  op.ready.emplace("decoded", Tensor::from_floats(x.shape, decoded));
  return op;
}

}  // namespace vkformer
