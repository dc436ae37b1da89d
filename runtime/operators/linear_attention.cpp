#include "ops/linear_attention.h"

#include "base/check.h"
#include "operators/head_operands.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

Result<PreparedOperator> prepare_features(const OperatorArguments& arguments,
                                          const LinearFeatureAttrs& features) {
  PreparedOperator op;
  VKF_ASSIGN(const HeadOperands o, bind_head_operands(arguments, op));
  LinearAttentionAttrs a{.features = features,
                         .batch = o.batch(),
                         .heads = o.heads(),
                         .queries = o.queries(),
                         .keys = o.keys(),
                         .head_width = o.head_width(),
                         .value_width = o.value_width(),
                         .q = o.q_layout(),
                         .k = o.k_layout(),
                         .v = o.v_layout(),
                         .y = separate_heads(o.heads(), o.queries(), o.value_width(), 0),
                         .y_shape = o.y_shape()};
  VKF_ASSIGN(const bool causal, arguments.attributes().get_bool_or("causal", false));
  if (causal) a.causal = LinearAttentionAttrs::Causal::kYes;
  LinearAttentionInputs inputs{.x = o.x, .mask = o.mask};
  if (features.map == LinearFeatureAttrs::Map::kFavor) {
    VKF_ASSIGN(Tensor omega, arguments.floats("omega"));
    inputs.omega = op.bind("omega", std::move(omega));
  }
  VKF_ASSIGN(const LinearAttentionOutputs outputs, add_linear_attention(op.graph, inputs, a));
  op.name_output(outputs.y, "output");
  return op;
}

}  // namespace

// linear_attention (Matrix product and attention)
// attributes: `eps` (1e-6), `causal` (false)
// inputs:     Q (B, H, T, E), K (B, H, S, E), V (B, H, S, Ev); optional key_mask (B, S)
// outputs:    output (B, H, T, Ev)
// computes:   Σ w v / (Σ w + eps) with w = φ(q) · φ(k), φ(x) = elu(x) + 1; causal: j ≤ i. Time and
//             memory grow with T and S, not with their product
Result<PreparedOperator> prepare_linear_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "key_mask"}, {"eps", "causal"}));
  LinearFeatureAttrs features;
  VKF_ASSIGN(features.epsilon, arguments.number_or("eps", 1e-6));
  return prepare_features(arguments, features);
}

// performer_attention (Matrix product and attention)
// attributes: `kernel_eps` (1e-4), `causal` (false)
// inputs:     the same, and omega (m, E)
// outputs:    output
// computes:   Σ w v / Σ w with φ(x) = exp(ω x' − abs(x')² / 2 − c) + kernel_eps, x' = x E^(−1/4),
//             one feature for each row ω; c of a query is the maximum of ω x' over its features, of
//             keys that over all features and kept keys of the head
Result<PreparedOperator> prepare_performer_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "omega", "key_mask"}, {"kernel_eps", "causal"}));
  LinearFeatureAttrs features{.map = LinearFeatureAttrs::Map::kFavor};
  VKF_ASSIGN(features.kernel_eps, arguments.number_or("kernel_eps", 1e-4));
  return prepare_features(arguments, features);
}

}  // namespace vkformer
