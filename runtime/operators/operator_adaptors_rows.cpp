#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/operator_scores.h"
#include "ops/activation.h"
#include "ops/gated_activation.h"
#include "ops/layer_norm.h"
#include "ops/log_softmax.h"
#include "ops/mean_pool.h"
#include "ops/rms_norm.h"
#include "ops/row_entropy.h"
#include "ops/softmax.h"

namespace vkformer {
namespace {

Tensor words_tensor(const std::vector<uint32_t>& words, Shape shape) {
  Tensor tensor = Tensor::zeros(DType::kU32, std::move(shape));
  const size_t bytes = std::min(tensor.bytes.size(), words.size() * 4);
  if (bytes > 0) std::memcpy(tensor.bytes.data(), words.data(), bytes);
  return tensor;
}

// The last dimension of X, or an error for a scalar.
Result<int64_t> width_of(const OperatorArguments& arguments, const Tensor& x) {
  if (!x.shape.empty()) return x.shape.back();
  return arguments.error("X is a scalar, but must have at least one dimension.");
}

Result<ActivationKind> kind_attribute(const OperatorArguments& arguments) {
  VKF_ASSIGN(const std::string name, arguments.attributes().get_string("kind"));
  return activation_from_name(name);
}

}  // namespace

Result<PreparedOperator> prepare_activation(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"kind"}));
  VKF_ASSIGN(const ActivationKind kind, kind_attribute(arguments));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_activation(op.graph, op.bind("X", std::move(x)), {kind}));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_gated_activation(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"kind"}));
  VKF_ASSIGN(const ActivationKind kind, kind_attribute(arguments));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_gated_activation(op.graph, op.bind("X", std::move(x)), {kind}));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_layer_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight", "bias", "residual"}, {"eps"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-5));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const int64_t width, width_of(arguments, x));
  VKF_ASSIGN(std::vector<float> gain_bias, arguments.row_or("weight", width, 1.0f));
  VKF_ASSIGN(const std::vector<float> bias, arguments.row_or("bias", width, 0.0f));
  gain_bias.insert(gain_bias.end(), bias.begin(), bias.end());
  PreparedOperator op;
  LayerNormInputs inputs;
  inputs.x = op.bind("X", std::move(x));
  inputs.gain_bias = op.bind("gain_bias", Tensor::from_floats({2, width}, gain_bias));
  if (arguments.find("residual") != nullptr) {
    VKF_ASSIGN(Tensor residual, arguments.floats("residual"));
    inputs.residual = op.bind("residual", std::move(residual));
  }
  VKF_ASSIGN(const TensorId y, add_layer_norm(op.graph, inputs, {epsilon}));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_rms_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight"}, {"eps"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-6));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const int64_t width, width_of(arguments, x));
  VKF_ASSIGN(const std::vector<float> gain, arguments.row_or("weight", width, 1.0f));
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId gain_id = op.bind("weight", Tensor::from_floats({width}, gain));
  VKF_ASSIGN(const TensorId y, add_rms_norm(op.graph, x_id, gain_id, {epsilon}));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_mean_pool(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "mask"}, {"normalize"}));
  VKF_ASSIGN(const bool normalize, arguments.attributes().get_bool_or("normalize", false));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  if (x.shape.size() != 3) {
    return arguments.error("X has shape " + shape_text(x.shape) +
                           ", but must have three dimensions (B, T, D).");
  }
  const int64_t batch = x.shape[0];
  const int64_t tokens = x.shape[1];
  PreparedOperator op;
  TensorId mask_id = kNoTensor;
  if (const Tensor* mask = arguments.find("mask")) {
    if (mask->shape != Shape{batch, tokens}) {
      return arguments.error("mask has shape " + shape_text(mask->shape) +
                             ", but must be (B, T) = " + shape_text({batch, tokens}) + ".");
    }
    VKF_ASSIGN(const std::vector<int64_t> values, mask->to_ints());
    std::vector<uint8_t> kept(values.size());
    std::transform(values.begin(), values.end(), kept.begin(),
                   [](int64_t v) { return static_cast<uint8_t>(v != 0); });
    mask_id = op.bind(
        "mask", words_tensor(pack_key_mask(kept, batch, tokens), {batch, (tokens + 31) / 32}));
  }
  const MeanPoolAttrs attrs{normalize ? MeanPoolAttrs::Normalize::kOn
                                      : MeanPoolAttrs::Normalize::kOff};
  VKF_ASSIGN(const TensorId y, add_mean_pool(op.graph, op.bind("X", std::move(x)), mask_id, attrs));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_softmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names(
      {"X", "key_mask", "mask", "bias", "global", "documents", "prefix", "block_map"},
      {"temperature", "causal", "causal_offset", "window_left", "window_right", "prefix",
       "block_size"}));
  SoftmaxAttrs attrs;
  VKF_ASSIGN(attrs.temperature, arguments.number_or("temperature", 1.0));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  const Shape given = x.shape;
  if (given.empty() || given.size() > 4) {
    return arguments.error("X has shape " + shape_text(given) +
                           ", but must have one to four dimensions, at most (B, H, T, S).");
  }
  x.shape = padded_shape(given, 4);
  VKF_ASSIGN(ScoreTerms terms,
             pack_call_terms(arguments, {x.shape[0], x.shape[1], x.shape[2], x.shape[3]}));
  attrs.terms = terms.params;
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId terms_id = op.bind("terms", std::move(terms.words));
  VKF_ASSIGN(const TensorId y, add_softmax(op.graph, x_id, terms_id, attrs));
  op.name_output(y, "Y");
  op.graph.tensor(y).shape = given;
  return op;
}

Result<PreparedOperator> prepare_log_softmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_log_softmax(op.graph, op.bind("X", std::move(x))));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_row_entropy(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  PreparedOperator op;
  VKF_ASSIGN(const TensorId y, add_row_entropy(op.graph, op.bind("X", std::move(x))));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
