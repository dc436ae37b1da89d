#include "model/blocks/encoder_decoder.h"

#include "ops/attention_step.h"
#include "ops/attention_weights.h"
#include "ops/embedding.h"
#include "ops/kv_append.h"
#include "ops/layer_norm.h"
#include "params/matmul.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;

bool pre_norm(const EncoderDecoderConfig& config) {
  return config.norm_order == EncoderDecoderConfig::NormOrder::kPre;
}

Result<TensorId> norm(ModelBuilder& b, const EncoderDecoderConfig& c, const std::string& name,
                      TensorId x, TensorId residual = kNoTensor) {
  b.graph().set_scope(name);
  VKF_ASSIGN(TensorId gain_bias, b.norm(name));
  return add_layer_norm(b.graph(), {.x = x, .gain_bias = gain_bias, .residual = residual},
                        {.epsilon = c.epsilon});
}

Result<TensorId> linear(ModelBuilder& b, const std::string& name, TensorId x,
                        LinearAttrs attrs = {}) {
  b.graph().set_scope(name);
  VKF_ASSIGN(LinearWeight weight, b.linear(name));
  return add_linear(b.graph(), x, weight, attrs);
}

Result<TensorId> embed(ModelBuilder& b, const StackConfig& stack, TensorId ids, TensorId state) {
  b.graph().set_scope(stack.embedding);
  VKF_ASSIGN(LinearWeight table, b.linear(stack.embedding));
  VKF_ASSIGN(TensorId positions, b.table("positions"));
  return add_embedding(b.graph(),
                       {.ids = ids, .table = table.tensor, .positions = positions, .state = state},
                       {.vocabulary = table.n,
                        .width = table.k,
                        .row_stride = 1,
                        .col_stride = kPanelColumns,
                        .panel_stride = kPanelColumns * table.k,
                        .scale = stack.embedding_scale});
}

// x -> sublayer(x) with its residual and norm in the configured order. `sublayer` maps the
// sublayer's input to its output; it adds the residual itself where it can (pre-norm).
template <class Sublayer>
Result<TensorId> residual_block(ModelBuilder& b, const EncoderDecoderConfig& c,
                                const std::string& norm_name, TensorId x, Sublayer sublayer) {
  if (pre_norm(c)) {
    VKF_ASSIGN(TensorId normed, norm(b, c, norm_name, x));
    return sublayer(normed, LinearAttrs{.residual = x});
  }
  VKF_ASSIGN(TensorId y, sublayer(x, LinearAttrs{}));
  return norm(b, c, norm_name, y, x);
}

Result<TensorId> feed_forward(ModelBuilder& b, const EncoderDecoderConfig& c,
                              const std::string& layer, TensorId x) {
  return residual_block(
      b, c, layer + ".ffn.norm", x, [&](TensorId h, LinearAttrs down) -> Result<TensorId> {
        VKF_ASSIGN(TensorId up, linear(b, layer + ".ffn.up", h, {.activation = c.activation}));
        return linear(b, layer + ".ffn.down", up, down);
      });
}

// Sizes of one attention of a full pass.
struct AttentionSizes {
  int64_t batch, heads, queries, keys, width;
};

AttentionAttrs attention_attrs(const AttentionSizes& n, ScoreTermsParams terms) {
  AttentionAttrs attrs;
  attrs.batch = static_cast<uint32_t>(n.batch);
  attrs.heads = attrs.kv_heads = static_cast<uint32_t>(n.heads);
  attrs.queries = static_cast<uint32_t>(n.queries);
  attrs.keys = static_cast<uint32_t>(n.keys);
  attrs.head_width = attrs.value_width = static_cast<uint32_t>(n.width / n.heads);
  attrs.terms = terms;
  return attrs;
}

// What of one attention is handed out; an empty name: nothing.
struct AttentionTap {
  std::string name;   // "cross_attentions.1"
  int64_t head = -1;  // -1: all
  AttentionWeightsAttrs::Result result = AttentionWeightsAttrs::Result::kProbabilities;
};

AttentionTap tap_of(const ForwardTaps& taps, const std::string& kind, int64_t layer) {
  const bool chosen = taps.attention_layer < 0 || taps.attention_layer == layer;
  if (taps.attentions == Tap::kOff || !chosen) return {};
  AttentionTap tap{.name = kind + "_attentions." + std::to_string(layer),
                   .head = taps.attention_head};
  if (taps.raw_scores == Tap::kOn) tap.result = AttentionWeightsAttrs::Result::kScores;
  return tap;
}

// Adds the fused attention and, where asked, the tap with its probabilities.
Result<TensorId> attend(ModelBuilder& b, const AttentionInputs& inputs, const AttentionAttrs& attrs,
                        const AttentionTap& tap, const std::string& name) {
  b.graph().set_scope(name);
  if (!tap.name.empty()) {
    AttentionWeightsAttrs weights{.attention = attrs};
    weights.first_head = tap.head < 0 ? 0 : static_cast<uint32_t>(tap.head);
    weights.head_count = tap.head < 0 ? 0 : 1;
    weights.result = tap.result;
    VKF_ASSIGN(TensorId map, add_attention_weights(b.graph(), inputs, weights));
    b.mark_output(map, tap.name);
  }
  return add_attention(b.graph(), inputs, attrs);
}

ScoreTermsParams key_mask_terms() {
  ScoreTermsParams terms = no_score_terms();
  terms.key_mask_offset = 0;
  return terms;
}

ScoreTermsParams causal_terms(bool key_mask) {
  ScoreTermsParams terms = key_mask ? key_mask_terms() : no_score_terms();
  terms.flags |= VKF_TERM_CAUSAL;
  return terms;
}

// One attention of one layer in a full pass.
struct AttentionSite {
  std::string name;  // "decoder.0.cross": prefix of its weight rows
  AttentionAttrs attrs;
  TensorId terms;
  AttentionTap tap;
};

Result<TensorId> self_attention(ModelBuilder& b, const AttentionSite& site, TensorId h,
                                LinearAttrs out) {
  VKF_ASSIGN(TensorId qkv, linear(b, site.name + ".qkv", h));
  AttentionAttrs attrs = site.attrs;
  const uint32_t d = attrs.heads * attrs.head_width;
  attrs.q = merged_rows(attrs.queries, 3 * d, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, 3 * d, d, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, 3 * d, 2 * d, attrs.head_width);
  VKF_ASSIGN(TensorId y,
             attend(b, {.q = qkv, .kv = qkv, .terms = site.terms}, attrs, site.tap, site.name));
  return linear(b, site.name + ".out", y, out);
}

Result<TensorId> cross_attention(ModelBuilder& b, const AttentionSite& site, TensorId h,
                                 TensorId memory, LinearAttrs out) {
  VKF_ASSIGN(TensorId q, linear(b, site.name + ".q", h));
  VKF_ASSIGN(TensorId kv, linear(b, site.name + ".kv", memory));
  AttentionAttrs attrs = site.attrs;
  const uint32_t d = attrs.heads * attrs.head_width;
  attrs.q = merged_rows(attrs.queries, d, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, 2 * d, 0, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, 2 * d, d, attrs.head_width);
  VKF_ASSIGN(TensorId y,
             attend(b, {.q = q, .kv = kv, .terms = site.terms}, attrs, site.tap, site.name));
  return linear(b, site.name + ".out", y, out);
}

Result<TensorId> encoder(ModelBuilder& b, const EncoderDecoderConfig& c, int64_t batch,
                         int64_t source, const ForwardTaps& taps) {
  Graph& g = b.graph();
  const TensorId ids = g.add_external("input_ids", DType::kU32, {batch, source});
  const TensorId mask = g.add_external("key_mask", DType::kU32, {batch, (source + 31) / 32});
  VKF_ASSIGN(TensorId x, embed(b, c.encoder, ids, kNoTensor));
  const AttentionAttrs attrs =
      attention_attrs({batch, c.encoder.heads, source, source, c.width}, key_mask_terms());
  for (int64_t i = 0; i < c.encoder.layers; ++i) {
    const std::string n = std::to_string(i);
    const std::string layer = "encoder." + n;
    if (taps.hidden_states == Tap::kOn) b.mark_output(x, "encoder_hidden_states." + n);
    const AttentionSite site{layer + ".self", attrs, mask, tap_of(taps, "encoder", i)};
    VKF_ASSIGN(x, residual_block(b, c, site.name + ".norm", x, [&](TensorId h, LinearAttrs out) {
                 return self_attention(b, site, h, out);
               }));
    VKF_ASSIGN(x, feed_forward(b, c, layer, x));
  }
  if (c.encoder.final_norm == StackConfig::FinalNorm::kNo) return x;
  return norm(b, c, "encoder.norm", x);
}

Result<TensorId> decoder(ModelBuilder& b, const EncoderDecoderConfig& c, const ForwardShape& s,
                         const ForwardTaps& taps, TensorId memory) {
  Graph& g = b.graph();
  const TensorId ids = g.add_external("decoder_input_ids", DType::kU32, {s.batch, s.target});
  const bool masked = taps.decoder_mask == Tap::kOn;
  // Attention binds a terms tensor in any case; without a mask of its own the encoder's is bound.
  const TensorId cross_mask = g.find_external("key_mask");
  const TensorId self_mask =
      masked ? g.add_external("decoder_key_mask", DType::kU32, {s.batch, (s.target + 31) / 32})
             : cross_mask;
  VKF_ASSIGN(TensorId x, embed(b, c.decoder, ids, kNoTensor));
  const AttentionAttrs self = attention_attrs(
      {s.batch, c.decoder.heads, s.target, s.target, c.width}, causal_terms(masked));
  const AttentionAttrs cross =
      attention_attrs({s.batch, c.decoder.heads, s.target, s.source, c.width}, key_mask_terms());
  for (int64_t i = 0; i < c.decoder.layers; ++i) {
    const std::string n = std::to_string(i);
    const std::string layer = "decoder." + n;
    if (taps.hidden_states == Tap::kOn) b.mark_output(x, "decoder_hidden_states." + n);
    const AttentionSite own{layer + ".self", self, self_mask, tap_of(taps, "decoder", i)};
    VKF_ASSIGN(x, residual_block(b, c, own.name + ".norm", x, [&](TensorId h, LinearAttrs out) {
                 return self_attention(b, own, h, out);
               }));
    const AttentionSite source{layer + ".cross", cross, cross_mask, tap_of(taps, "cross", i)};
    VKF_ASSIGN(x, residual_block(b, c, source.name + ".norm", x, [&](TensorId h, LinearAttrs out) {
                 return cross_attention(b, source, h, memory, out);
               }));
    VKF_ASSIGN(x, feed_forward(b, c, layer, x));
  }
  if (c.decoder.final_norm == StackConfig::FinalNorm::kNo) return x;
  return norm(b, c, "decoder.norm", x);
}

// External tensors of a decoding step.
struct StepTensors {
  TensorId ids, state, key_mask, ancestry;
};

StepTensors step_externals(Graph& g, const StepShape& s) {
  const int64_t rows = s.batch * s.beams;
  return {.ids = g.add_external("step_ids", DType::kU32, {rows}),
          .state = g.add_external("decode_state", DType::kU32, {4096}),
          .key_mask = g.add_external("key_mask", DType::kU32, {s.batch, (s.source + 31) / 32}),
          .ancestry = g.add_external("ancestry", DType::kU32, {rows, s.capacity})};
}

// What every layer of a decoding step needs.
struct StepPass {
  ModelBuilder& b;
  const EncoderDecoderConfig& c;
  StepShape shape;
  StepTensors tensors;

  AttentionStepAttrs attrs(AttentionStepAttrs::Source source) const {
    AttentionStepAttrs attrs;
    attrs.source = source;
    attrs.heads = attrs.kv_heads = static_cast<uint32_t>(c.decoder.heads);
    attrs.head_width = attrs.value_width = static_cast<uint32_t>(c.width / c.decoder.heads);
    attrs.beams = static_cast<uint32_t>(shape.beams);
    return attrs;
  }
};

Result<TensorId> step_self(const StepPass& pass, const std::string& n, TensorId h,
                           LinearAttrs out) {
  Graph& g = pass.b.graph();
  const StepShape& s = pass.shape;
  const std::string name = "decoder." + n + ".self";
  const TensorId cache = g.add_external("self_kv." + n, DType::kF32,
                                        {s.batch * s.beams, s.capacity, 2 * pass.c.width});
  VKF_ASSIGN(TensorId qkv, linear(pass.b, name + ".qkv", h));
  g.set_scope(name);
  const auto d = static_cast<uint32_t>(pass.c.width);
  VKF_CHECK(add_kv_append(g, qkv, pass.tensors.state, cache,
                          {.k_offset = d, .v_offset = 2 * d, .k_width = d, .v_width = d}));
  VKF_ASSIGN(
      TensorId y,
      add_attention_step(
          g, {.q = qkv, .kv = cache, .aux = pass.tensors.ancestry, .state = pass.tensors.state},
          pass.attrs(AttentionStepAttrs::Source::kSelf)));
  return linear(pass.b, name + ".out", y, out);
}

Result<TensorId> step_cross(const StepPass& pass, const std::string& n, TensorId h,
                            LinearAttrs out) {
  Graph& g = pass.b.graph();
  const StepShape& s = pass.shape;
  const std::string name = "decoder." + n + ".cross";
  const TensorId kv =
      g.add_external("cross_kv." + n, DType::kF32, {s.batch, s.source, 2 * pass.c.width});
  VKF_ASSIGN(TensorId q, linear(pass.b, name + ".q", h));
  g.set_scope(name);
  VKF_ASSIGN(TensorId y,
             add_attention_step(
                 g, {.q = q, .kv = kv, .aux = pass.tensors.key_mask, .state = pass.tensors.state},
                 pass.attrs(AttentionStepAttrs::Source::kCross)));
  return linear(pass.b, name + ".out", y, out);
}

}  // namespace

EncoderDecoderFamily::EncoderDecoderFamily(ModelFacts facts, GenerationFacts generation,
                                           EncoderDecoderConfig block)
    : facts_(std::move(facts)), generation_(std::move(generation)), block_(std::move(block)) {}

Status EncoderDecoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                           const ForwardTaps& taps) const {
  VKF_ASSIGN(TensorId memory, encoder(b, block_, shape.batch, shape.source, taps));
  b.mark_output(memory, "encoder_last_hidden_state");
  if (shape.target == 0) return {};
  VKF_ASSIGN(TensorId states, decoder(b, block_, shape, taps, memory));
  b.mark_output(states, "last_hidden_state");
  VKF_ASSIGN(TensorId logits, linear(b, block_.head, states));
  b.mark_output(logits, "logits");
  return {};
}

Status EncoderDecoderFamily::build_encode(ModelBuilder& b, const StepShape& s) const {
  VKF_ASSIGN(TensorId memory, encoder(b, block_, s.batch, s.source, {}));
  for (int64_t i = 0; i < block_.decoder.layers; ++i) {
    const std::string n = std::to_string(i);
    VKF_ASSIGN(TensorId kv, linear(b, "decoder." + n + ".cross.kv", memory));
    b.mark_output(kv, "cross_kv." + n);
  }
  return {};
}

Result<TensorId> EncoderDecoderFamily::build_step(ModelBuilder& b, const StepShape& s) const {
  Graph& g = b.graph();
  g.set_step(static_cast<uint32_t>(s.batch * s.beams));
  const StepPass pass{b, block_, s, step_externals(g, s)};
  VKF_ASSIGN(TensorId x, embed(b, block_.decoder, pass.tensors.ids, pass.tensors.state));
  for (int64_t i = 0; i < block_.decoder.layers; ++i) {
    const std::string n = std::to_string(i);
    const std::string layer = "decoder." + n;
    VKF_ASSIGN(
        x, residual_block(b, block_, layer + ".self.norm", x,
                          [&](TensorId h, LinearAttrs out) { return step_self(pass, n, h, out); }));
    VKF_ASSIGN(
        x, residual_block(b, block_, layer + ".cross.norm", x, [&](TensorId h, LinearAttrs out) {
          return step_cross(pass, n, h, out);
        }));
    VKF_ASSIGN(x, feed_forward(b, block_, layer, x));
  }
  if (block_.decoder.final_norm == StackConfig::FinalNorm::kYes) {
    VKF_ASSIGN(x, norm(b, block_, "decoder.norm", x));
  }
  return linear(b, block_.head, x);
}

}  // namespace vkformer
