#include "model/blocks/linear_layers.h"

#include "base/message.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/attention_weights.h"
#include "ops/sequence_projection.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;
using Sharing = LinearMixing::Sharing;

// The projection that all layers of a layerwise Linformer share.
constexpr const char* kShared = "shared_projection";

class LinearModel : public ModelFamily {
 public:
  explicit LinearModel(LinearModelRead read)
      : facts_(std::move(read.facts)),
        block_(std::move(read.block)),
        tokens_(std::move(read.tokens)),
        positions_(facts_.max_source) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return tokens_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Status build_prompt(ModelBuilder& builder, const StepShape& shape) const override;
  Result<StepResult> build_step(ModelBuilder& builder, const StepShape& shape) const override;

 private:
  struct Site;
  void add_layer_rows(int64_t layer, WeightTable& table) const;
  void add_mixing_rows(int64_t layer, WeightTable& table) const;
  Result<TensorId> add_layers(ModelBuilder& b, const StackRun& run, TensorId x) const;
  Result<TensorId> add_layer(const Site& site, TensorId x) const;
  Result<TensorId> attend(const Site& site, TensorId qkv) const;
  Result<TensorId> attend_by_features(const Site& site, TensorId qkv) const;
  Result<TensorId> attend_in_step(const Site& site, TensorId qkv) const;
  Result<TensorId> attend_projected(const Site& site, TensorId qkv) const;
  Result<SequenceProjectionInputs> projection_inputs(const Site& site, TensorId qkv) const;
  Result<TensorId> omega(const Site& site) const;
  // The states (R, 2, H W) of a generation.
  TensorId states(const Site& site) const;
  HeadLayout part(int64_t index, int64_t tokens) const;
  bool has_head() const { return !block_.head.empty(); }

  ModelFacts facts_;
  LinearModelConfig block_;
  GenerationFacts tokens_;
  int64_t positions_;  // rows of the table
};

// One layer of one pass.
struct LinearModel::Site {
  ModelBuilder& b;
  const StackRun& run;
  int64_t layer = 0;
  std::string rows;  // prefix of its weight rows

  bool tapped() const {
    const ForwardTaps& taps = run.taps;
    const bool chosen = taps.attention_layer < 0 || taps.attention_layer == layer;
    return taps.attentions == Tap::kOn && chosen;
  }
  std::string tap_name() const { return "attentions." + std::to_string(layer); }
  uint32_t first_head() const {
    return run.taps.attention_head < 0 ? 0 : u32(run.taps.attention_head);
  }
  uint32_t head_count() const { return run.taps.attention_head < 0 ? 0 : 1; }
};

// A Linformer's matrices reach as far as the file's do.
Status LinearModel::prepare(const Checkpoint& checkpoint) {
  LinearMixing& m = block_.mixing;
  if (m.kind != LinearMixing::Kind::kProjected) return {};
  const std::string name = m.sharing == Sharing::kLayerwise ? kShared : "layers.0.attention.E";
  const TensorView* matrix = checkpoint.find(name);
  m.reach = facts_.max_source;
  if (matrix == nullptr || matrix->shape.empty()) return {};
  m.reach = std::min(matrix->shape.back(), kMostPositions);
  facts_.max_source = facts_.max_target = std::min(facts_.max_source, m.reach);
  return {};
}

void LinearModel::add_mixing_rows(int64_t layer, WeightTable& table) const {
  const LinearMixing& m = block_.mixing;
  const StackConfig& s = block_.stack;
  const std::string to = s.layer_rows(layer) + ".self.";
  const std::string from = "layers." + std::to_string(layer) + ".attention.";
  if (m.kind == LinearMixing::Kind::kFeatures) {
    if (m.omega_rows == 0) return;
    table.rows.push_back(table_row(to + "omega", {from + "projection"}, {m.omega_rows}, s.head()));
    return;
  }
  if (m.sharing == Sharing::kLayerwise) return;
  const bool per_head = m.sharing == Sharing::kNone;
  // A head's matrix (P, N) is one row of the table.
  const int64_t rows = per_head ? s.heads : m.projected;
  const int64_t width = per_head ? m.projected * m.reach : m.reach;
  table.rows.push_back(table_row(to + "e", {from + "E"}, {rows}, width));
  if (m.sharing == Sharing::kKeyValue) return;
  table.rows.push_back(table_row(to + "f", {from + "F"}, {rows}, width));
}

void LinearModel::add_layer_rows(int64_t layer, WeightTable& table) const {
  const StackConfig& s = block_.stack;
  const int64_t d = s.width;
  const std::string to = s.layer_rows(layer);
  const std::string from = "layers." + std::to_string(layer) + ".";
  const std::string attn = from + "attention.";
  table.rows.push_back(
      linear_row(to + ".self.qkv", {attn + "query", attn + "key", attn + "value"}, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {attn + "out"}, d, d));
  table.rows.push_back(norm_row(to + ".self.norm", from + "attention_norm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {from + "up"}, s.ffn, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {from + "down"}, d, s.ffn));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "ffn_norm", d));
}

Result<WeightTable> LinearModel::weight_table(const Checkpoint&) const {
  WeightTable table;
  const StackConfig& s = block_.stack;
  const LinearMixing& m = block_.mixing;
  table.rows.push_back(
      embedding_row("embed", "word_embeddings.weight", facts_.source_vocab, s.width));
  table.rows.push_back(
      table_row("positions", {"position_embeddings.weight"}, {positions_}, s.width));
  table.rows.push_back(norm_row("embed.norm", "embedding_norm", s.width));
  if (m.kind == LinearMixing::Kind::kProjected && m.sharing == Sharing::kLayerwise) {
    table.rows.push_back(table_row("projection", {kShared}, {m.projected}, m.reach));
  }
  for (int64_t i = 0; i < s.layers; ++i) {
    add_layer_rows(i, table);
    add_mixing_rows(i, table);
  }
  if (s.final_norm == StackConfig::FinalNorm::kYes) {
    table.rows.push_back(norm_row(s.rows + ".norm", "final_norm", s.width));
  }
  if (has_head()) {
    table.rows.push_back(linear_row("head", {"lm_head"}, facts_.target_vocab, s.width));
  }
  return table;
}

// Queries (0), keys (1) or values (2) in rows of the merged projection.
HeadLayout LinearModel::part(int64_t index, int64_t tokens) const {
  const StackConfig& s = block_.stack;
  return merged_rows(u32(tokens), u32(s.qkv_width()), u32(index * s.width), u32(s.head()));
}

Result<TensorId> LinearModel::omega(const Site& site) const {
  if (block_.mixing.omega_rows == 0) return kNoTensor;
  return site.b.table(site.rows + ".self.omega");
}

TensorId LinearModel::states(const Site& site) const {
  const StackConfig& s = block_.stack;
  const LinearMixing& m = block_.mixing;
  const int64_t width = linear_state_width(m.features, m.omega_rows, s.head(), s.head());
  return site.b.graph().add_external(
      "self_state." + std::to_string(site.layer), DType::kF32,
      {site.run.step.batch * site.run.step.beams, 2, s.heads * width});
}

Result<TensorId> LinearModel::attend_by_features(const Site& site, TensorId qkv) const {
  const StackConfig& s = block_.stack;
  const StackRun& run = site.run;
  LinearAttentionAttrs a{.features = block_.mixing.features,
                         .batch = u32(run.batch),
                         .heads = u32(s.heads),
                         .queries = u32(run.tokens),
                         .keys = u32(run.tokens),
                         .head_width = u32(s.head()),
                         .value_width = u32(s.head()),
                         .q = part(0, run.tokens),
                         .k = part(1, run.tokens),
                         .v = part(2, run.tokens)};
  if (s.causal == StackConfig::Causal::kYes) a.causal = LinearAttentionAttrs::Causal::kYes;
  if (site.tapped()) {
    if (run.taps.raw_scores == Tap::kOn) {
      return unsupported(
          message({"[attentions] scores before a softmax were asked for, but the weights of a ",
                   facts_.architecture, " come from none; ask for probabilities"}));
    }
    a.maps = LinearAttentionAttrs::Maps::kChosen;
    a.first_head = site.first_head();
    a.head_count = site.head_count();
  }
  LinearAttentionInputs inputs{.x = qkv, .mask = run.terms.words};
  VKF_ASSIGN(inputs.omega, omega(site));
  if (run.mode == StackRun::Mode::kPrompt) {
    inputs.states = states(site);
    a.beams = u32(run.step.beams);
  }
  VKF_ASSIGN(LinearAttentionOutputs outputs, add_linear_attention(site.b.graph(), inputs, a));
  if (outputs.weights != kNoTensor) site.b.mark_output(outputs.weights, site.tap_name());
  return outputs.y;
}

Result<TensorId> LinearModel::attend_in_step(const Site& site, TensorId qkv) const {
  const StackConfig& s = block_.stack;
  const StackRun& run = site.run;
  LinearStepInputs inputs{.x = qkv, .ancestry = run.ancestry, .state = run.state};
  VKF_ASSIGN(inputs.omega, omega(site));
  inputs.states = states(site);
  return add_linear_attention_step(site.b.graph(), inputs,
                                   {.features = block_.mixing.features,
                                    .heads = u32(s.heads),
                                    .head_width = u32(s.head()),
                                    .value_width = u32(s.head()),
                                    .q_offset = 0,
                                    .k_offset = u32(s.width),
                                    .v_offset = u32(2 * s.width),
                                    .beams = u32(run.step.beams),
                                    .capacity = u32(run.step.capacity)});
}

Result<SequenceProjectionInputs> LinearModel::projection_inputs(const Site& site,
                                                                TensorId qkv) const {
  SequenceProjectionInputs inputs{.x = qkv, .mask = site.run.terms.words};
  const Sharing sharing = block_.mixing.sharing;
  const bool all = sharing == Sharing::kLayerwise;
  VKF_ASSIGN(inputs.e, site.b.table(all ? "projection" : site.rows + ".self.e"));
  inputs.f = inputs.e;
  if (!all && sharing != Sharing::kKeyValue) {
    VKF_ASSIGN(inputs.f, site.b.table(site.rows + ".self.f"));
  }
  return inputs;
}

Result<TensorId> LinearModel::attend_projected(const Site& site, TensorId qkv) const {
  const StackConfig& s = block_.stack;
  const LinearMixing& m = block_.mixing;
  const StackRun& run = site.run;
  SequenceProjectionAttrs projection{.batch = u32(run.batch),
                                     .heads = u32(s.heads),
                                     .keys = u32(run.tokens),
                                     .head_width = u32(s.head()),
                                     .value_width = u32(s.head()),
                                     .projected = u32(m.projected),
                                     .reach = u32(m.reach),
                                     .k = part(1, run.tokens),
                                     .v = part(2, run.tokens)};
  if (m.sharing == Sharing::kNone)
    projection.matrices = SequenceProjectionAttrs::Matrices::kPerHead;
  Graph& g = site.b.graph();
  VKF_ASSIGN(SequenceProjectionInputs inputs, projection_inputs(site, qkv));
  VKF_ASSIGN(TensorId kv, add_sequence_projection(g, inputs, projection));
  AttentionAttrs a;
  a.batch = projection.batch;
  a.heads = a.kv_heads = projection.heads;
  a.queries = projection.keys;
  a.keys = projection.projected;
  a.head_width = a.value_width = projection.head_width;
  a.q = part(0, run.tokens);
  a.k = projected_keys(projection);
  a.v = projected_values(projection);
  if (site.tapped()) {
    AttentionWeightsAttrs weights{
        .attention = a, .first_head = site.first_head(), .head_count = site.head_count()};
    if (run.taps.raw_scores == Tap::kOn) weights.result = AttentionWeightsAttrs::Result::kScores;
    VKF_ASSIGN(TensorId map, add_attention_weights(g, {.q = qkv, .kv = kv}, weights));
    site.b.mark_output(map, site.tap_name());
  }
  return add_attention(g, {.q = qkv, .kv = kv}, a);
}

Result<TensorId> LinearModel::attend(const Site& site, TensorId qkv) const {
  site.b.graph().set_scope(site.rows + ".self");
  if (block_.mixing.kind == LinearMixing::Kind::kProjected) return attend_projected(site, qkv);
  return site.run.mode == StackRun::Mode::kStep ? attend_in_step(site, qkv)
                                                : attend_by_features(site, qkv);
}

// x (..., D) -> x (..., D).
Result<TensorId> LinearModel::add_layer(const Site& site, TensorId x) const {
  ModelBuilder& b = site.b;
  const StackConfig& s = block_.stack;
  const bool first = s.order == StackConfig::Order::kPre;
  const LinearAttrs up{.activation = s.activation};
  if (first) {
    VKF_ASSIGN(TensorId h, add_named_norm(b, s, site.rows + ".self.norm", x));
    VKF_ASSIGN(h, add_named_linear(b, site.rows + ".self.qkv", h));
    VKF_ASSIGN(h, attend(site, h));
    VKF_ASSIGN(x, add_named_linear(b, site.rows + ".self.out", h, {.residual = x}));
    VKF_ASSIGN(h, add_named_norm(b, s, site.rows + ".ffn.norm", x));
    VKF_ASSIGN(h, add_named_linear(b, site.rows + ".ffn.up", h, up));
    return add_named_linear(b, site.rows + ".ffn.down", h, {.residual = x});
  }
  VKF_ASSIGN(TensorId h, add_named_linear(b, site.rows + ".self.qkv", x));
  VKF_ASSIGN(h, attend(site, h));
  VKF_ASSIGN(h, add_named_linear(b, site.rows + ".self.out", h));
  VKF_ASSIGN(x, add_named_norm(b, s, site.rows + ".self.norm", h, x));
  VKF_ASSIGN(h, add_named_linear(b, site.rows + ".ffn.up", x, up));
  VKF_ASSIGN(h, add_named_linear(b, site.rows + ".ffn.down", h));
  return add_named_norm(b, s, site.rows + ".ffn.norm", h, x);
}

Result<TensorId> LinearModel::add_layers(ModelBuilder& b, const StackRun& run, TensorId x) const {
  const StackConfig& s = block_.stack;
  for (int64_t i = 0; i < s.layers; ++i) {
    if (run.taps.hidden_states == Tap::kOn) {
      b.mark_output(x, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_layer({b, run, i, s.layer_rows(i)}, x));
  }
  if (s.final_norm == StackConfig::FinalNorm::kNo) return x;
  return add_named_norm(b, s, s.rows + ".norm", x);
}

Status LinearModel::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                  const ForwardTaps& taps) const {
  const StackConfig& s = block_.stack;
  StackRun run{.batch = shape.batch, .tokens = shape.source, .taps = taps};
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, s, block_.embedding, {.positions = taps.positions},
                                {shape.batch, shape.source}));
  run.terms = add_stack_terms(b, s, "key_mask", shape.batch, shape.source);
  VKF_ASSIGN(TensorId states, add_layers(b, run, embedded.x));
  b.mark_output(states, "last_hidden_state");
  const HeadInput input{states, run.terms.words};
  if (has_head()) VKF_CHECK(add_heads(b, s, {HeadConfig{.output = block_.head}}, input));
  return add_sentence_embedding(b, facts_.sentence, taps, input);
}

Status LinearModel::build_prompt(ModelBuilder& b, const StepShape& shape) const {
  if (facts_.kind != ModelKind::kDecoder || !has_head()) return ModelFamily::build_prompt(b, shape);
  const int64_t tokens = shape.prompt - 1;  // the last one is the first step's
  if (tokens == 0) return {};
  StackRun run{.mode = StackRun::Mode::kPrompt, .batch = shape.batch, .tokens = tokens};
  run.step = shape;
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, block_.stack, block_.embedding, {}, {shape.batch, tokens}));
  // A state sums the whole prompt, so the padding after a shorter one is masked.
  run.terms = add_stack_terms(b, block_.stack, "key_mask", shape.batch, tokens);
  VKF_CHECK(add_layers(b, run, embedded.x));
  return {};
}

Result<StepResult> LinearModel::build_step(ModelBuilder& b, const StepShape& shape) const {
  if (facts_.kind != ModelKind::kDecoder || !has_head()) return ModelFamily::build_step(b, shape);
  b.graph().set_step(u32(shape.batch * shape.beams));
  const StepTensors tensors = add_step_tensors(b, block_.stack, shape);
  StackRun run{.mode = StackRun::Mode::kStep, .batch = shape.batch, .tokens = 1};
  run.step = shape;
  run.state = tensors.state;
  run.ancestry = tensors.ancestry;
  VKF_ASSIGN(TensorId x, add_step_embedding(b, block_.stack, block_.embedding, tensors));
  StepResult result;
  VKF_ASSIGN(result.states, add_layers(b, run, x));
  VKF_ASSIGN(result.logits, add_named_linear(b, block_.head, result.states));
  return result;
}

// Sizes and switches of the layers.
Status read_stack(const JsonConfig& config, StackConfig& s) {
  s.rows = "layers";
  VKF_ASSIGN(s.width, get_size(config, "hidden_size", kMostWidth));
  VKF_ASSIGN(s.layers, get_size(config, "num_hidden_layers", kMostLayers));
  VKF_ASSIGN(s.heads, get_size(config, "num_attention_heads", kMostWidth));
  VKF_CHECK(head_width(config, s.width, s.heads));
  VKF_ASSIGN(s.ffn, get_size(config, "intermediate_size", 4 * kMostWidth));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(s.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(bool before, config.get_bool_or("norm_first", false));
  VKF_ASSIGN(bool causal, config.get_bool_or("causal", false));
  if (causal) s.causal = StackConfig::Causal::kYes;
  if (!before) return {};
  s.order = StackConfig::Order::kPre;
  s.final_norm = StackConfig::FinalNorm::kYes;
  return {};
}

}  // namespace

Result<LinearModelRead> read_linear_model(const ModelFiles& files, const std::string& family) {
  const JsonConfig& config = files.config;
  LinearModelRead read;
  read.facts.family = family;
  VKF_ASSIGN(read.facts.architecture, get_architecture(config, family));
  VKF_CHECK(read_stack(config, read.block.stack));
  const StackConfig& s = read.block.stack;
  ModelFacts& f = read.facts;
  const bool causal = s.causal == StackConfig::Causal::kYes;
  VKF_ASSIGN(bool head, config.get_bool_or("lm_head", false));
  VKF_ASSIGN(f.source_vocab, get_size(config, "vocab_size", kMostVocabulary));
  VKF_ASSIGN(f.max_source, get_size(config, "max_position_embeddings", kMostPositions));
  f.kind = causal ? ModelKind::kDecoder : ModelKind::kEncoder;
  if (head) f.head = causal ? HeadKind::kLanguage : HeadKind::kMasked;
  f.width = s.width;
  (causal ? f.decoder_layers : f.encoder_layers) = s.layers;
  (causal ? f.decoder_heads : f.encoder_heads) = s.heads;
  f.target_vocab = f.source_vocab;
  f.max_target = f.max_source;
  f.sentence = files.sentence;
  read.block.embedding = {.words = "embed", .positions = "positions", .norm = "embed.norm"};
  if (head) read.block.head = "head";
  VKF_ASSIGN(read.tokens, read_generation(config, files.generation));
  return read;
}

std::unique_ptr<ModelFamily> make_linear_model(LinearModelRead read) {
  return std::unique_ptr<ModelFamily>(new LinearModel(std::move(read)));
}

}  // namespace vkformer
