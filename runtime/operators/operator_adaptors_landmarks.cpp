// Adaptors of attention that is linear in the tokens through landmarks or hashes.
#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "model/blocks/nystrom_attention.h"
#include "operators/operator_adaptors.h"
#include "ops/chunk_attention.h"
#include "ops/lsh_hash.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"

namespace vkformer {
namespace {

// All dimensions within what kernels count, or an error.
Status check_dimensions(const OperatorArguments& arguments, const char* name, const Shape& shape) {
  for (int64_t size : shape) {
    if (size > 0 && size < (1 << 24)) continue;
    return arguments.error("A dimension of " + std::string(name) + " " + shape_text(shape) +
                           " is " + std::to_string(size) + ", but must be from 1 to 16777215.");
  }
  return {};
}

// (B, H, S, width) must have offsets of 32 bits.
Status check_elements(const OperatorArguments& arguments, const Shape& shape, int64_t width) {
  const double elements = static_cast<double>(shape[0]) * static_cast<double>(shape[1]) *
                          static_cast<double>(shape[2]) * static_cast<double>(width);
  if (elements < 4294967296.0) return {};
  return arguments.error("Inputs of " + shape_text(shape) +
                         " hold 2^32 elements or more together; use a smaller batch.");
}

// The tensors one behind the other, in one (elements).
Tensor join(std::initializer_list<const Tensor*> parts) {
  int64_t count = 0;
  for (const Tensor* part : parts) count += part->count();
  Tensor joined = Tensor::zeros(DType::kF32, {count});
  std::byte* to = joined.bytes.data();
  for (const Tensor* part : parts) {
    std::memcpy(to, part->bytes.data(), part->bytes.size());
    to += part->bytes.size();
  }
  return joined;
}

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

// U32 buckets as I64.
Result<TensorMap> widen_buckets(TensorMap outputs) {
  Tensor& y = outputs.at("buckets");
  VKF_ASSIGN(const std::vector<int64_t> values, y.to_ints());
  y = Tensor::from_ints(y.shape, values);
  return outputs;
}

Result<LshHashAttrs> hash_attrs(const OperatorArguments& arguments, const char* name,
                                const Shape& s, const Shape& r) {
  if (s.size() != 4 || r.size() != 4 || r[0] != s[1] || r[1] != s[3]) {
    return arguments.error(std::string(name) + " " + shape_text(s) + " and rotations " +
                           shape_text(r) +
                           " must be (B, H, S, E) and (H, E, hashes, half the buckets).");
  }
  VKF_CHECK(check_dimensions(arguments, name, s));
  VKF_CHECK(check_dimensions(arguments, "rotations", r));
  LshHashAttrs attrs{.batch = u32(s[0]),
                     .heads = u32(s[1]),
                     .tokens = u32(s[2]),
                     .head_width = u32(s[3]),
                     .rounds = u32(r[2]),
                     .factors = {2 * u32(r[3])}};
  attrs.x = separate_heads(attrs.heads, attrs.tokens, attrs.head_width, 0);
  return attrs;
}

Result<ChunkAttentionAttrs> chunk_attrs(const OperatorArguments& arguments,
                                        const LshHashAttrs& hash, const Shape& qk, const Shape& v) {
  if (v.size() != 4 || v[0] != qk[0] || v[1] != qk[1] || v[2] != qk[2]) {
    return arguments.error("V " + shape_text(v) + " must be (B, H, S, Ev), as QK " +
                           shape_text(qk) + " is (B, H, S, E).");
  }
  VKF_CHECK(check_dimensions(arguments, "V", v));
  VKF_CHECK(check_elements(arguments, qk, qk[3] + v[3]));
  ChunkAttentionAttrs a{.batch = hash.batch,
                        .heads = hash.heads,
                        .tokens = hash.tokens,
                        .head_width = hash.head_width,
                        .value_width = u32(v[3]),
                        .rounds = hash.rounds};
  VKF_ASSIGN(const int64_t chunk, arguments.integer_or("chunk_length", 64, 1, 1 << 24));
  if (qk[2] % chunk != 0) {
    return arguments.error("chunk_length is " + std::to_string(chunk) +
                           ", which does not divide the " + std::to_string(qk[2]) +
                           " tokens of QK.");
  }
  a.chunk = u32(chunk);
  VKF_ASSIGN(const int64_t before, arguments.integer_or("chunks_before", 1, 0, 1 << 24));
  VKF_ASSIGN(const int64_t after, arguments.integer_or("chunks_after", 0, 0, 1 << 24));
  a.before = u32(before);
  a.after = u32(after);
  VKF_ASSIGN(const bool causal, arguments.attributes().get_bool_or("causal", false));
  if (causal) a.causal = ChunkAttentionAttrs::Causal::kYes;
  a.keys = ChunkAttentionAttrs::Keys::kQueries;
  a.q = a.k = hash.x;
  a.v = separate_heads(a.heads, a.tokens, a.value_width, u32(element_count(qk)));
  return a;
}

}  // namespace

Result<PreparedOperator> prepare_nystrom_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V"}, {"num_landmarks", "init"}));
  VKF_ASSIGN(const Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_ASSIGN(const NystromAttrs attrs, nystrom_attrs(arguments, q.shape, k.shape, v.shape));
  PreparedOperator op;
  NystromInputs inputs;
  inputs.x = op.bind("QKV", join({&q, &k, &v}));
  const std::vector<float> ones(attrs.landmarks, 1.0f);
  inputs.ones = op.bind("ones", Tensor::from_floats({1, attrs.landmarks}, ones));
  VKF_ASSIGN(const NystromResult result, add_nystrom_attention(op.graph, inputs, attrs));
  op.name_output(result.y, "output");
  op.name_output(result.inverse, "pseudo_inverse");
  op.finish = split_heads;
  return op;
}

Result<PreparedOperator> prepare_lsh_hash(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "rotations"}, {}));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(Tensor rotations, arguments.floats("rotations"));
  VKF_ASSIGN(LshHashAttrs attrs, hash_attrs(arguments, "X", x.shape, rotations.shape));
  // A round's buckets begin at 0 here, as the definition of the operator alone has it.
  attrs.offsets = LshHashAttrs::Offsets::kNone;
  PreparedOperator op;
  LshHashInputs inputs;
  inputs.x = op.bind("X", std::move(x));
  inputs.rotations = op.bind("rotations", std::move(rotations));
  VKF_ASSIGN(const TensorId buckets, add_lsh_hash(op.graph, inputs, attrs));
  op.name_output(buckets, "buckets");
  op.finish = widen_buckets;
  return op;
}

Result<PreparedOperator> prepare_lsh_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"QK", "V", "rotations"},
                                  {"chunk_length", "chunks_before", "chunks_after", "causal"}));
  VKF_ASSIGN(const Tensor qk, arguments.floats("QK"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_ASSIGN(Tensor rotations, arguments.floats("rotations"));
  VKF_ASSIGN(const LshHashAttrs hash, hash_attrs(arguments, "QK", qk.shape, rotations.shape));
  VKF_ASSIGN(const ChunkAttentionAttrs attrs, chunk_attrs(arguments, hash, qk.shape, v.shape));
  PreparedOperator op;
  const TensorId x = op.bind("QKV", join({&qk, &v}));
  LshHashInputs inputs{.x = x};
  inputs.rotations = op.bind("rotations", std::move(rotations));
  VKF_ASSIGN(const uint32_t buckets, count_buckets(hash.factors));
  VKF_ASSIGN(const TensorId hashed, add_lsh_hash(op.graph, inputs, hash));
  VKF_ASSIGN(const TensorId order, add_lsh_sort(op.graph, hashed, {.buckets = buckets}));
  VKF_ASSIGN(TensorId y, add_chunk_attention(op.graph, {.x = x, .order = order}, attrs));
  if (attrs.rounds > 1) {
    VKF_ASSIGN(y, add_mix_rounds(op.graph, y));
  }
  op.name_output(y, "output");
  return op;
}

}  // namespace vkformer
