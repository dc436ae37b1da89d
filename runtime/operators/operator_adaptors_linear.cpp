// Adaptors of the attention operators that are linear in the number of keys.
#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/linear_attention.h"
#include "ops/sequence_projection.h"

namespace vkformer {
namespace {

// Q, K and V of a call, one after the other in one tensor, with their sizes.
struct Operands {
  Shape q;  // (B, H, T, E)
  Shape k;  // (B, H, S, E)
  Shape v;  // (B, H, S, Ev)
  TensorId x = kNoTensor;
  TensorId mask = kNoTensor;

  uint32_t batch() const { return static_cast<uint32_t>(q[0]); }
  uint32_t heads() const { return static_cast<uint32_t>(q[1]); }
  uint32_t queries() const { return static_cast<uint32_t>(q[2]); }
  uint32_t keys() const { return static_cast<uint32_t>(k[2]); }
  uint32_t head_width() const { return static_cast<uint32_t>(q[3]); }
  uint32_t value_width() const { return static_cast<uint32_t>(v[3]); }
  HeadLayout q_layout() const { return separate_heads(heads(), queries(), head_width(), 0); }
  HeadLayout k_layout() const {
    return separate_heads(heads(), keys(), head_width(), static_cast<uint32_t>(element_count(q)));
  }
  HeadLayout v_layout() const {
    return separate_heads(heads(), keys(), value_width(),
                          static_cast<uint32_t>(element_count(q) + element_count(k)));
  }
  Shape y_shape() const { return {q[0], q[1], q[2], v[3]}; }
};

Status check_shapes(const OperatorArguments& arguments, const Operands& o) {
  const Shape &q = o.q, &k = o.k, &v = o.v;
  const bool fit = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] &&
                   q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && q[3] == k[3] && k[2] == v[2];
  if (!fit) {
    return arguments.error("Q " + shape_text(q) + ", K " + shape_text(k) + " and V " +
                           shape_text(v) +
                           " must be (B, H, T, E), (B, H, S, E) and (B, H, S, Ev).");
  }
  const int64_t words = element_count(q) + element_count(k) + element_count(v);
  for (const Shape* shape : {&q, &k, &v}) {
    for (int64_t size : *shape) {
      if (size > 0 && size < (1 << 24) && words <= int64_t{UINT32_MAX}) continue;
      return arguments.error("Q " + shape_text(q) + ", K " + shape_text(k) + " and V " +
                             shape_text(v) + " have a dimension that is not from 1 to 16777215, " +
                             "or more than 2^32 - 1 elements.");
    }
  }
  return {};
}

Status bind_mask(const OperatorArguments& arguments, PreparedOperator& op, Operands& o) {
  const Tensor* given = arguments.find("key_mask");
  if (given == nullptr) return {};
  const Shape wanted = {o.k[0], o.k[2]};
  if (given->shape != wanted) {
    return arguments.error("Input key_mask has shape " + shape_text(given->shape) +
                           ", but must have " + shape_text(wanted) + ", one value per key.");
  }
  auto values = given->to_ints();
  if (!values) return values.error().with_context("[key_mask]");
  std::vector<uint8_t> kept(values->size());
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = (*values)[i] != 0 ? 1 : 0;
  const std::vector<uint32_t> words = pack_key_mask(kept, wanted[0], wanted[1]);
  Tensor mask = Tensor::zeros(DType::kU32, {wanted[0], (wanted[1] + 31) / 32});
  std::memcpy(mask.bytes.data(), words.data(), mask.bytes.size());
  o.mask = op.bind("key_mask", std::move(mask));
  return {};
}

Result<Operands> bind_operands(const OperatorArguments& arguments, PreparedOperator& op) {
  VKF_ASSIGN(const Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  Operands o{.q = q.shape, .k = k.shape, .v = v.shape};
  VKF_CHECK(check_shapes(arguments, o));
  Tensor x = Tensor::zeros(DType::kF32, {q.count() + k.count() + v.count()});
  std::byte* to = x.bytes.data();
  for (const Tensor* part : {&q, &k, &v}) {
    std::memcpy(to, part->bytes.data(), part->bytes.size());
    to += part->bytes.size();
  }
  o.x = op.bind("QKV", std::move(x));
  VKF_CHECK(bind_mask(arguments, op, o));
  return o;
}

Result<PreparedOperator> prepare_features(const OperatorArguments& arguments,
                                          const LinearFeatureAttrs& features) {
  PreparedOperator op;
  VKF_ASSIGN(const Operands o, bind_operands(arguments, op));
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

Result<PreparedOperator> prepare_linear_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "key_mask"}, {"eps", "causal"}));
  LinearFeatureAttrs features;
  VKF_ASSIGN(features.epsilon, arguments.number_or("eps", 1e-6));
  return prepare_features(arguments, features);
}

Result<PreparedOperator> prepare_performer_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "omega", "key_mask"}, {"kernel_eps", "causal"}));
  LinearFeatureAttrs features{.map = LinearFeatureAttrs::Map::kFavor};
  VKF_ASSIGN(features.kernel_eps, arguments.number_or("kernel_eps", 1e-4));
  return prepare_features(arguments, features);
}

Result<PreparedOperator> prepare_linformer_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "E", "F", "key_mask"}, {"scale"}));
  PreparedOperator op;
  VKF_ASSIGN(const Operands o, bind_operands(arguments, op));
  VKF_ASSIGN(Tensor e, arguments.floats("E"));
  VKF_ASSIGN(Tensor f, arguments.floats("F"));
  if (e.shape.size() != 2 || e.shape != f.shape || e.count() < 1 || e.count() >= (1 << 28)) {
    return arguments.error("E " + shape_text(e.shape) + " and F " + shape_text(f.shape) +
                           " must both be (P, N) with at most 2^28 - 1 elements.");
  }
  SequenceProjectionAttrs projection{.batch = o.batch(),
                                     .heads = o.heads(),
                                     .keys = o.keys(),
                                     .head_width = o.head_width(),
                                     .value_width = o.value_width(),
                                     .projected = static_cast<uint32_t>(e.shape[0]),
                                     .reach = static_cast<uint32_t>(e.shape[1]),
                                     .k = o.k_layout(),
                                     .v = o.v_layout()};
  SequenceProjectionInputs inputs{.x = o.x, .mask = o.mask};
  inputs.e = op.bind("E", std::move(e));
  inputs.f = op.bind("F", std::move(f));
  VKF_ASSIGN(const TensorId kv, add_sequence_projection(op.graph, inputs, projection));
  AttentionAttrs a;
  a.batch = o.batch();
  a.heads = a.kv_heads = o.heads();
  a.queries = o.queries();
  a.keys = projection.projected;
  a.head_width = o.head_width();
  a.value_width = o.value_width();
  a.q = o.q_layout();
  a.k = projected_keys(projection);
  a.v = projected_values(projection);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = o.y_shape();
  if (arguments.attributes().has("scale")) {
    VKF_ASSIGN(a.scale, arguments.number_or("scale", 1.0));
  }
  VKF_ASSIGN(const TensorId y, add_attention(op.graph, {.q = o.x, .kv = kv}, a));
  op.name_output(y, "output");
  return op;
}

}  // namespace vkformer
