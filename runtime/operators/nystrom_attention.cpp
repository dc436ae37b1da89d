#include "model/blocks/nystrom_attention.h"

#include "base/check.h"
#include "base/narrow.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

Result<NystromAttrs> nystrom_attrs(const OperatorArguments& arguments, const Shape& q,
                                   const Shape& k, const Shape& v) {
  const bool fit =
      q.size() == 4 && k == q && v.size() == 4 && v[0] == q[0] && v[1] == q[1] && v[2] == q[2];
  if (!fit) {
    return arguments.error("Q " + shape_text(q) + ", K " + shape_text(k) + " and V " +
                           shape_text(v) +
                           " must be (B, H, S, E), (B, H, S, E) and (B, H, S, Ev).");
  }
  VKF_CHECK(check_dimensions(arguments, "Q", q));
  VKF_CHECK(check_dimensions(arguments, "V", v));
  VKF_CHECK(check_elements(arguments, q, 2 * q[3] + v[3]));
  NystromAttrs attrs;
  VKF_ASSIGN(const int64_t landmarks, arguments.integer_or("num_landmarks", 64, 1, 1 << 20));
  if (q[2] % landmarks != 0) {
    return arguments.error("num_landmarks is " + std::to_string(landmarks) +
                           ", which does not divide the " + std::to_string(q[2]) + " tokens of Q.");
  }
  attrs.landmarks = u32(landmarks);
  VKF_ASSIGN(const std::string init, arguments.attributes().get_string_or("init", "original"));
  if (init != "original" && init != "exact") {
    return arguments.error("init is '" + init + "', but must be original or exact.");
  }
  if (init == "exact") attrs.maximum = InverseStartAttrs::Maximum::kOwn;
  AttentionAttrs& a = attrs.attention;
  a.batch = u32(q[0]);
  a.heads = a.kv_heads = u32(q[1]);
  a.queries = a.keys = u32(q[2]);
  a.head_width = u32(q[3]);
  a.value_width = u32(v[3]);
  const uint32_t count = u32(element_count(q));
  a.q = separate_heads(a.heads, a.queries, a.head_width, 0);
  a.k = separate_heads(a.heads, a.queries, a.head_width, count);
  a.v = separate_heads(a.heads, a.queries, a.value_width, 2 * count);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = v;
  return attrs;
}

// The inverses (B * H, M, M) as (B, H, M, M), by the output's shape.
Result<TensorMap> split_heads(TensorMap outputs) {
  Tensor& inverse = outputs.at("pseudo_inverse");
  const Shape& y = outputs.at("output").shape;
  inverse.shape = {y[0], y[1], inverse.shape[1], inverse.shape[2]};
  return outputs;
}

}  // namespace

// nystrom_attention (Matrix product and attention)
// attributes: `num_landmarks` (64), `init` (original, or exact)
// inputs:     Q, K (B, H, S, E), V (B, H, S, Ev)
// outputs:    output (B, H, S, Ev), pseudo_inverse (B, H, M, M)
// computes:   softmax(Q K̃ᵀ) A⁺ (softmax(Q̃ Kᵀ) V), A = softmax(Q̃ K̃ᵀ), scores divided by sqrt(E);
//             Q̃, K̃ are means of S / M tokens each; A⁺ is six steps of an iteration from Aᵀ over
//             the largest column sum, of all matrices (original) or of each its own (exact)
Result<PreparedOperator> prepare_nystrom_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V"}, {"num_landmarks", "init"}));
  VKF_ASSIGN(const Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_ASSIGN(const NystromAttrs attrs, nystrom_attrs(arguments, q.shape, k.shape, v.shape));
  PreparedOperator op;
  NystromInputs inputs;
  inputs.x = op.bind("QKV", joined({&q, &k, &v}));
  const std::vector<float> ones(attrs.landmarks, 1.0f);
  inputs.ones = op.bind("ones", Tensor::from_floats({1, attrs.landmarks}, ones));
  VKF_ASSIGN(const NystromResult result, add_nystrom_attention(op.graph, inputs, attrs));
  op.name_output(result.y, "output");
  op.name_output(result.inverse, "pseudo_inverse");
  op.finish = split_heads;
  return op;
}

}  // namespace vkformer
