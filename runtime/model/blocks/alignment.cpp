#include "model/blocks/alignment.h"

#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "ops/concat_columns.h"
#include "ops/move_columns.h"

namespace vkformer {
namespace {

using Kind = AlignmentConfig::Kind;
using Attrs = AdditiveAttentionAttrs;

// x (..., N) with `width` columns of zeros before or after it. W_a [s; h] is W_a [s; 0] + W_a [0;
// h], the second of which is the same for all queries.
enum class Side : uint8_t { kBefore, kAfter };
Result<TensorId> pad(ModelBuilder& b, TensorId x, int64_t width, Side side) {
  Shape shape = b.graph().tensor(x).shape;
  shape.back() = width;
  VKF_ASSIGN(TensorId zeros, add_columns(b.graph(), kNoTensor, {}, std::move(shape)));
  return side == Side::kBefore ? add_concat_columns(b.graph(), zeros, x)
                               : add_concat_columns(b.graph(), x, zeros);
}

Result<TensorId> query_of(ModelBuilder& b, const AlignmentConfig& c, TensorId s) {
  TensorId q = s;
  if (c.kind == Kind::kConcat) {
    VKF_ASSIGN(q, pad(b, q, c.memory, Side::kAfter));
  }
  if (c.additive() || c.kind == Kind::kLocation) {
    VKF_ASSIGN(q, add_named_linear(b, "attention.query", q));
  }
  if (c.window != Attrs::Window::kPredictive) return q;
  // p = S sigmoid(v_p tanh(W_p s)); S is counted where the mask is read.
  VKF_ASSIGN(TensorId center,
             add_named_linear(b, "attention.place", s, {.activation = ActivationKind::kTanh}));
  VKF_ASSIGN(center, add_named_linear(b, "attention.center", center,
                                      {.activation = ActivationKind::kSigmoid}));
  return add_concat_columns(b.graph(), q, center);
}

Attrs::Score score_of(const AlignmentConfig& c) {
  if (c.additive()) return Attrs::Score::kAdditive;
  return c.kind == Kind::kLocation ? Attrs::Score::kLocation : Attrs::Score::kDot;
}

}  // namespace

int64_t AlignmentConfig::line_width() const {
  const bool values_only = kind == Kind::kDot || kind == Kind::kLocation;
  return memory + (values_only ? 0 : query_width());
}

TensorId add_alignment_words(ModelBuilder& b, const AlignmentConfig& c, int64_t batch,
                             int64_t source) {
  const int64_t mask = batch * ((source + 31) / 32);
  const TensorId aux = b.graph().add_external(
      "key_mask", DType::kU32, {mask + static_cast<int64_t>(c.additive() ? c.v.size() : 0)});
  if (c.additive()) b.host_words(aux, static_cast<uint64_t>(mask), float_words(c.v));
  return aux;
}

Result<TensorId> add_alignment_keys(ModelBuilder& b, const AlignmentConfig& c, TensorId states) {
  if (c.kind == Kind::kDot || c.kind == Kind::kLocation) return states;
  TensorId keys = states;
  b.graph().set_scope("attention.key");
  if (c.kind == Kind::kConcat) {
    VKF_ASSIGN(keys, pad(b, keys, c.decoder_width, Side::kBefore));
  }
  VKF_ASSIGN(keys, add_named_linear(
                       b, c.kind == Kind::kConcat ? "attention.query" : "attention.key", keys));
  return add_concat_columns(b.graph(), keys, states);
}

Result<TensorId> add_alignment(ModelBuilder& b, const AlignmentConfig& c, const AlignmentMemory& m,
                               const AlignmentQueries& queries) {
  const Shape& shape = b.graph().tensor(queries.states).shape;
  const int64_t rows = element_count(shape) / shape.back();
  b.graph().set_scope("attention");
  VKF_ASSIGN(TensorId q, query_of(b, c, queries.states));
  b.graph().set_scope("attention");
  const Attrs attrs{.score = score_of(c),
                    .window = c.window,
                    .result = queries.result,
                    .width = u32(c.query_width()),
                    .value_width = u32(c.memory),
                    .reach = u32(c.reach),
                    .queries = u32(queries.step == kNoTensor ? rows / m.batch : queries.beams),
                    .first = u32(queries.first),
                    .v_offset = u32(m.batch * ((m.source + 31) / 32)),
                    .masked = true};
  return add_additive_attention(b.graph(),
                                {.q = q, .kv = m.kv, .aux = m.aux, .state = queries.step}, attrs);
}

}  // namespace vkformer
