#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/matmul.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

Result<MatmulAttrs> read_attrs(const OperatorArguments& arguments) {
  MatmulAttrs attrs;
  VKF_ASSIGN(attrs.trans_a, arguments.attributes().get_bool_or("trans_a", false));
  VKF_ASSIGN(attrs.trans_b, arguments.attributes().get_bool_or("trans_b", false));
  VKF_ASSIGN(attrs.alpha, arguments.number_or("alpha", 1.0));
  VKF_ASSIGN(attrs.beta, arguments.number_or("beta", 1.0));
  VKF_ASSIGN(const std::string kind, arguments.attributes().get_string_or("activation", "none"));
  VKF_ASSIGN(attrs.activation, activation_from_name(kind));
  return attrs;
}

// Whether the right side can be packed as a model's weight is: one matrix, nothing but a bias
// added.
bool packable(const MatmulAttrs& attrs, const Tensor& a, const Tensor& b, const Tensor* c) {
  const bool bias = c == nullptr || (c->shape.size() == 1 && attrs.beta == 1.0f);
  return b.shape.size() == 2 && a.shape.size() >= 2 && !attrs.trans_a && attrs.alpha == 1.0f &&
         bias;
}

// The product with B packed: what --weights means for a single operator.
Result<TensorId> add_packed(PreparedOperator& op, const OperatorArguments& arguments,
                            const MatmulAttrs& attrs, TensorId a) {
  VKF_ASSIGN(const MatrixFormat format, arguments.weight_format());
  VKF_ASSIGN(const Tensor b, arguments.floats("B"));
  VKF_ASSIGN(const std::vector<float> values, b.to_floats());
  const int64_t n = b.shape[attrs.trans_b ? 0 : 1];
  const int64_t k = b.shape[attrs.trans_b ? 1 : 0];
  std::vector<float> bias;
  if (arguments.find("C") != nullptr) {
    VKF_ASSIGN(const Tensor c, arguments.floats("C"));
    VKF_ASSIGN(bias, c.to_floats());
  }
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {n, k, attrs.trans_b ? MatrixOrder::kOutIn : MatrixOrder::kInOut},
                         bias, format));
  const LinearWeight weight{.tensor = op.bind("weight", packed_tensor(packed)),
                            .n = static_cast<uint32_t>(n),
                            .k = static_cast<uint32_t>(k),
                            .bias_offset = packed.bias_offset,
                            .format = format};
  return add_linear(op.graph, a, weight, {.activation = attrs.activation});
}

}  // namespace

// gemm (Matrix product and attention)
// attributes: `trans_a`, `trans_b` (false), `alpha` (1), `beta` (1), `activation` (none)
// inputs:     A (..., M, K), *weight* B (..., K, N); optional C (N), (M, N) or the output's shape
// outputs:    Y (..., M, N)
// computes:   act(alpha · op(A) op(B) + beta · C); leading axes broadcast
Result<PreparedOperator> prepare_gemm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"A", "B", "C"},
                                  {"trans_a", "trans_b", "alpha", "beta", "activation"}));
  VKF_ASSIGN(const MatmulAttrs attrs, read_attrs(arguments));
  VKF_ASSIGN(Tensor a, arguments.floats("A"));
  VKF_ASSIGN(Tensor b, arguments.floats("B"));
  const Tensor* addend = arguments.find("C");
  VKF_ASSIGN(const MatrixFormat format, arguments.weight_format());
  const bool packed = format != MatrixFormat::kF32 && packable(attrs, a, b, addend);
  PreparedOperator op;
  const TensorId a_id = op.bind("A", std::move(a));
  if (packed) {
    VKF_ASSIGN(const TensorId y, add_packed(op, arguments, attrs, a_id));
    op.name_output(y, "Y");
    return op;
  }
  const TensorId b_id = op.bind("B", std::move(b));
  TensorId c_id = kNoTensor;
  if (addend != nullptr) {
    VKF_ASSIGN(Tensor c, arguments.floats("C"));
    c_id = op.bind("C", std::move(c));
  }
  VKF_ASSIGN(const TensorId y, add_matmul(op.graph, a_id, b_id, c_id, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
