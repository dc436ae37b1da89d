#include "base/check.h"
#include "base/narrow.h"
#include "operators/lsh_hash.h"
#include "operators/operator_adaptors.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"

namespace vkformer {
namespace {

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

// lsh_attention (Matrix product and attention)
// attributes: `chunk_length` (64, a divisor of S), `chunks_before` (1), `chunks_after` (0),
//             `causal` (false)
// inputs:     QK (B, H, S, E), V (B, H, S, Ev), rotations (H, E, R, C)
// outputs:    output (B, S, H · Ev)
// computes:   queries are keys: tokens sorted by `lsh_hash`, chunks of them see themselves and
//             their neighbors, the R rounds weighed by the softmax of their logsumexp
Result<PreparedOperator> prepare_lsh_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"QK", "V", "rotations"},
                                  {"chunk_length", "chunks_before", "chunks_after", "causal"}));
  VKF_ASSIGN(const Tensor qk, arguments.floats("QK"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_ASSIGN(Tensor rotations, arguments.floats("rotations"));
  VKF_ASSIGN(const LshHashAttrs hash, lsh_hash_attrs(arguments, "QK", qk.shape, rotations.shape));
  VKF_ASSIGN(const ChunkAttentionAttrs attrs, chunk_attrs(arguments, hash, qk.shape, v.shape));
  PreparedOperator op;
  const TensorId x = op.bind("QKV", joined({&qk, &v}));
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
