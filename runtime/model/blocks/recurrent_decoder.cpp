#include "model/blocks/recurrent_decoder.h"

#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "ops/concat_columns.h"
#include "ops/recurrence.h"

namespace vkformer {
namespace {

// What goes from one target token to the next, and what it leaves for the head.
struct Moment {
  TensorId s = kNoTensor;          // (R, Hd)
  TensorId carry = kNoTensor;      // (R, Hd): the LSTM's cell; of a GRU s itself
  TensorId fed = kNoTensor;        // h~ (R, Hd)
  TensorId alignment = kNoTensor;  // (R, C + S): [context | weights]
  TensorId context = kNoTensor;    // (R, C)
  TensorId scores = kNoTensor;     // (R, C + S), where scores are asked for
};

struct DecoderSite {
  ModelBuilder& b;
  const RecurrentDecoder& c;
  const AlignmentMemory& memory;
  AlignmentQueries queries = {};  // but for their states
  AlignmentMap map = AlignmentMap::kNone;
};

// Columns [first, first + width) of x's last axis.
Result<TensorId> columns(ModelBuilder& b, TensorId x, int64_t first, int64_t width) {
  Shape shape = b.graph().tensor(x).shape;
  const RowPlace from{u32(first), u32(shape.back())};
  shape.back() = width;
  return add_columns(b.graph(), x, from, std::move(shape));
}

Status align(const DecoderSite& site, TensorId states, Moment& m) {
  AlignmentQueries queries = site.queries;
  queries.states = states;
  VKF_ASSIGN(m.alignment, add_alignment(site.b, site.c.alignment, site.memory, queries));
  VKF_ASSIGN(m.context, columns(site.b, m.alignment, 0, site.c.alignment.memory));
  if (site.map != AlignmentMap::kScores) return {};
  queries.result = AdditiveAttentionAttrs::Result::kScores;
  VKF_ASSIGN(m.scores, add_alignment(site.b, site.c.alignment, site.memory, queries));
  return {};
}

// h~ = tanh(W_c [c; s]).
Result<TensorId> attentional_state(ModelBuilder& b, TensorId context, TensorId s) {
  VKF_ASSIGN(TensorId joined, add_concat_columns(b.graph(), context, s));
  return add_named_linear(b, "attention.out", joined, {.activation = ActivationKind::kTanh});
}

// One target token: e (R, E).
Status advance(const DecoderSite& site, TensorId e, Moment& m) {
  ModelBuilder& b = site.b;
  TensorId x = e;
  if (site.c.early()) {
    VKF_CHECK(align(site, m.s, m));
    VKF_ASSIGN(x, add_concat_columns(b.graph(), e, m.context));
  } else if (site.c.feeds()) {
    VKF_ASSIGN(x, add_concat_columns(b.graph(), e, m.fed));
  }
  VKF_ASSIGN(TensorId gates, add_named_linear(b, "decoder.input", x));
  VKF_ASSIGN(TensorId states, add_named_linear(b, "decoder.state", m.s));
  b.graph().set_scope("decoder");
  VKF_ASSIGN(m.s, add_recurrent_cell(b.graph(), {gates, states, m.carry}, {.cell = site.c.cell}));
  if (site.c.cell == CellKind::kGru) m.carry = m.s;
  if (site.c.early() || !site.c.aligned()) return {};
  VKF_CHECK(align(site, m.s, m));
  VKF_ASSIGN(m.fed, attentional_state(b, m.context, m.s));
  return {};
}

// What the head reads of s or h~, the contexts and the embeddings.
Result<TensorId> features_of(ModelBuilder& b, const RecurrentDecoder& c, TensorId last,
                             TensorId context, TensorId e) {
  if (!c.early()) return last;
  VKF_ASSIGN(TensorId joined, add_concat_columns(b.graph(), last, context));
  return add_concat_columns(b.graph(), joined, e);
}

// The map's columns of the alignments (B, T, C + S).
Result<TensorId> map_of(const DecoderSite& site, const Shape& tokens, const Moment& m) {
  if (site.map == AlignmentMap::kNone) return kNoTensor;
  const int64_t context = site.c.alignment.memory;
  const TensorId from = site.map == AlignmentMap::kScores ? m.scores : m.alignment;
  return add_columns(site.b.graph(), from, {u32(context), u32(context + site.memory.source)},
                     {tokens[0], 1, tokens[1], site.memory.source});
}

// Without feedback from the alignment the cell runs over all tokens at once.
Result<DecoderStates> run_layer(DecoderSite& site, const DecoderStart& start) {
  ModelBuilder& b = site.b;
  const RecurrentDecoder& c = site.c;
  const Shape tokens = b.graph().tensor(start.embedded).shape;
  VKF_ASSIGN(TensorId gates, add_named_linear(b, "decoder.input", start.embedded));
  VKF_ASSIGN(LinearWeight weight, b.linear("decoder.state"));
  b.graph().set_scope("decoder");
  VKF_ASSIGN(TensorId states,
             add_recurrence(b.graph(), {.gates = gates, .weight = weight, .initial = start.state},
                            {.cell = c.cell}));
  DecoderStates result;
  const int64_t line = c.state_width();
  VKF_ASSIGN(result.state,
             add_columns(b.graph(), states, {u32((tokens[1] - 1) * line), u32(tokens[1] * line)},
                         {tokens[0], line}));
  result.last = states;
  if (c.cell == CellKind::kLstm) {
    VKF_ASSIGN(result.last, columns(b, states, 0, c.width()));
  }
  if (c.aligned()) {
    Moment m;
    VKF_CHECK(align(site, result.last, m));
    VKF_ASSIGN(result.weights, map_of(site, tokens, m));
    VKF_ASSIGN(result.last, attentional_state(b, m.context, result.last));
  }
  result.features = result.last;
  return result;
}

// Tensors (B, T, W) that are filled token by token.
class Sequence {
 public:
  Sequence(Graph& graph, const Shape& tokens) : graph_(graph), tokens_(tokens) {}
  Status put(TensorId x, int64_t t) {
    const int64_t width = graph_.tensor(x).shape.back();
    if (all == kNoTensor) {
      all = graph_.add_temporary("sequence", DType::kF32, {tokens_[0], tokens_[1], width});
    }
    return add_place_columns(graph_, x, all, {u32(t * width), u32(tokens_[1] * width)});
  }
  TensorId all = kNoTensor;

 private:
  Graph& graph_;
  const Shape& tokens_;
};

Result<Moment> first_moment(ModelBuilder& b, const RecurrentDecoder& c, TensorId state) {
  Moment m{.s = state, .carry = state};
  if (c.cell == CellKind::kLstm) {
    VKF_ASSIGN(m.s, columns(b, state, 0, c.width()));
    VKF_ASSIGN(m.carry, columns(b, state, c.width(), c.width()));
  }
  if (c.feeds()) {
    VKF_ASSIGN(m.fed, add_columns(b.graph(), kNoTensor, {}, b.graph().tensor(m.s).shape));
  }
  return m;
}

// Token by token, because each one's alignment is the next one's input.
Result<DecoderStates> run_tokens(DecoderSite& site, const DecoderStart& start) {
  Graph& g = site.b.graph();
  const RecurrentDecoder& c = site.c;
  const Shape tokens = g.tensor(start.embedded).shape;
  VKF_ASSIGN(Moment m, first_moment(site.b, c, start.state));
  Sequence last(g, tokens), alignments(g, tokens), scores(g, tokens);
  for (int64_t t = 0; t < tokens[1]; ++t) {
    g.set_scope("decoder");
    VKF_ASSIGN(TensorId e,
               add_columns(g, start.embedded, {u32(t * tokens[2]), u32(tokens[1] * tokens[2])},
                           {tokens[0], tokens[2]}));
    site.queries.first = t;
    VKF_CHECK(advance(site, e, m));
    VKF_CHECK(last.put(c.early() ? m.s : m.fed, t));
    if (c.early() || site.map == AlignmentMap::kWeights) VKF_CHECK(alignments.put(m.alignment, t));
    if (site.map == AlignmentMap::kScores) VKF_CHECK(scores.put(m.scores, t));
  }
  DecoderStates result{.last = last.all, .state = m.s, .fed = m.fed};
  if (c.cell == CellKind::kLstm) {
    VKF_ASSIGN(result.state, add_concat_columns(g, m.s, m.carry));
  }
  TensorId context = kNoTensor;
  if (c.early()) {
    VKF_ASSIGN(context, columns(site.b, alignments.all, 0, c.alignment.memory));
  }
  m.alignment = alignments.all;
  m.scores = scores.all;
  VKF_ASSIGN(result.weights, map_of(site, tokens, m));
  VKF_ASSIGN(result.features, features_of(site.b, c, result.last, context, start.embedded));
  return result;
}

}  // namespace

Result<DecoderStates> add_recurrent_decoder(ModelBuilder& b, const RecurrentDecoder& c,
                                            const DecoderStart& start, AlignmentMap map) {
  DecoderSite site{.b = b, .c = c, .memory = start.memory, .map = map};
  return c.early() || c.feeds() ? run_tokens(site, start) : run_layer(site, start);
}

Result<DecoderStates> add_recurrent_step(ModelBuilder& b, const RecurrentDecoder& c,
                                         const DecoderStep& step) {
  Graph& g = b.graph();
  g.set_scope("decoder");
  Moment m;
  VKF_ASSIGN(m.s, add_load_state(g, step.cache, 0, c.width()));
  m.carry = m.s;
  if (c.cell == CellKind::kLstm) {
    VKF_ASSIGN(m.carry, add_load_state(g, step.cache, u32(c.width()), c.width()));
  }
  if (c.feeds()) {
    VKF_ASSIGN(m.fed, add_load_state(g, step.cache, u32(c.state_width()), c.width()));
  }
  const DecoderSite site{.b = b,
                         .c = c,
                         .memory = step.memory,
                         .queries = {.step = step.cache.state, .beams = step.cache.beams}};
  VKF_CHECK(advance(site, step.embedded, m));
  g.set_scope("decoder");
  VKF_CHECK(add_store_state(g, m.s, step.cache, 0));
  if (c.cell == CellKind::kLstm) {
    VKF_CHECK(add_store_state(g, m.carry, step.cache, u32(c.width())));
  }
  if (c.feeds()) VKF_CHECK(add_store_state(g, m.fed, step.cache, u32(c.state_width())));
  const bool attentional = c.aligned() && !c.early();
  DecoderStates states{.last = attentional ? m.fed : m.s};
  VKF_ASSIGN(states.features, features_of(b, c, states.last, m.context, step.embedded));
  return states;
}

}  // namespace vkformer
