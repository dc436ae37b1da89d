#include <cstring>

#include "base/check.h"
#include "ops/attention_weights.h"
#include "ops/row_entropy.h"
#include "session/operator_adaptors.h"
#include "session/operator_scores.h"

namespace vkformer {
namespace {

// The graph of a call with its operands bound.
struct Call {
  PreparedOperator op;
  AttentionInputs inputs;
  AttentionAttrs attrs;
};

Status check_operands(const OperatorArguments& arguments, const Tensor& q, const Tensor& k,
                      const Tensor& v) {
  const Shape &a = q.shape, &b = k.shape, &c = v.shape;
  const bool fit = a.size() == 4 && b.size() == 4 && c.size() == 4 && a[0] == b[0] &&
                   a[0] == c[0] && a[3] == b[3] && b[1] == c[1] && b[2] == c[2];
  if (fit) return {};
  return arguments.error("Q " + shape_text(a) + ", K " + shape_text(b) + " and V " + shape_text(c) +
                         " must be (B, H, T, E), (B, Hkv, S, E) and (B, Hkv, S, Ev).");
}

// K, then V, in one tensor (elements).
Tensor join(const Tensor& k, const Tensor& v) {
  Tensor kv = Tensor::zeros(DType::kF32, {k.count() + v.count()});
  if (!k.bytes.empty()) std::memcpy(kv.bytes.data(), k.bytes.data(), k.bytes.size());
  if (!v.bytes.empty()) {
    std::memcpy(kv.bytes.data() + k.bytes.size(), v.bytes.data(), v.bytes.size());
  }
  return kv;
}

Result<AttentionAttrs> read_attrs(const OperatorArguments& arguments, const Shape& q,
                                  const Shape& k, const Shape& v) {
  AttentionAttrs a;
  const int64_t sizes[] = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
  for (int64_t size : sizes) {
    if (size > 0 && size < (1 << 24)) continue;
    return arguments.error("a dimension of Q, K or V is " + std::to_string(size) +
                           ", but must be from 1 to 16777215.");
  }
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  a.batch = u(q[0]);
  a.heads = u(q[1]);
  a.kv_heads = u(k[1]);
  a.queries = u(q[2]);
  a.keys = u(k[2]);
  a.head_width = u(q[3]);
  a.value_width = u(v[3]);
  a.q = separate_heads(a.heads, a.queries, a.head_width, 0);
  a.k = separate_heads(a.kv_heads, a.keys, a.head_width, 0);
  a.v = separate_heads(a.kv_heads, a.keys, a.value_width,
                       a.batch * a.kv_heads * a.keys * a.head_width);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = {q[0], q[1], q[2], v[3]};
  if (arguments.attributes().has("scale")) {
    VKF_ASSIGN(a.scale, arguments.number_or("scale", 1.0));
  }
  VKF_ASSIGN(a.temperature, arguments.number_or("temperature", 1.0));
  return a;
}

Result<Call> prepare_call(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "key_mask", "mask", "bias", "global",
                                   "alibi_slopes", "documents", "prefix", "block_map"},
                                  {"scale", "temperature", "causal", "causal_offset", "window_left",
                                   "window_right", "alibi_slopes", "prefix", "block_size"}));
  VKF_ASSIGN(Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_CHECK(check_operands(arguments, q, k, v));
  Call call;
  VKF_ASSIGN(call.attrs, read_attrs(arguments, q.shape, k.shape, v.shape));
  VKF_ASSIGN(ScoreTerms terms,
             pack_call_terms(arguments, {q.shape[0], q.shape[1], q.shape[2], k.shape[2]}));
  call.attrs.terms = terms.params;
  call.attrs.visited = visited_keys(terms);
  call.attrs.most_visited = terms.most_of_blocks;
  call.inputs.q = call.op.bind("Q", std::move(q));
  call.inputs.kv = call.op.bind("KV", join(k, v));
  call.inputs.terms = call.op.bind("terms", std::move(terms.words));
  return call;
}

Status add_output(Call& call) {
  VKF_ASSIGN(const TensorId y, add_attention(call.op.graph, call.inputs, call.attrs));
  call.op.name_output(y, "output");
  return {};
}

}  // namespace

Result<PreparedOperator> prepare_attention(const OperatorArguments& arguments) {
  VKF_ASSIGN(Call call, prepare_call(arguments));
  VKF_CHECK(add_output(call));
  return std::move(call.op);
}

Result<PreparedOperator> prepare_attention_weights(const OperatorArguments& arguments) {
  VKF_ASSIGN(Call call, prepare_call(arguments));
  VKF_CHECK(add_output(call));
  AttentionWeightsAttrs attrs;
  attrs.attention = call.attrs;
  VKF_ASSIGN(const TensorId weights, add_attention_weights(call.op.graph, call.inputs, attrs));
  VKF_ASSIGN(const TensorId entropy, add_row_entropy(call.op.graph, weights));
  call.op.name_output(weights, "weights");
  call.op.name_output(entropy, "entropy");
  return std::move(call.op);
}

}  // namespace vkformer
