// Recurrent sequence-to-sequence models, where attention began. These are RNNsearch (Bahdanau et
// al., "Neural machine translation by jointly learning to align and translate", 2014), the models
// of Luong et al. ("Effective approaches to attention-based neural machine translation", 2015), and
// without attention Sutskever et al. ("Sequence to sequence learning with neural networks", 2014).
// docs/recurrent_models.md has configuration, weights and formulas.
#include <algorithm>

#include "base/message.h"
#include "model/blocks/recurrent.h"
#include "model/blocks/recurrent_decoder.h"
#include "model/blocks/text_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

using AlignmentKind = AlignmentConfig::Kind;
using Window = AdditiveAttentionAttrs::Window;
using Directions = RecurrentEncoder::Directions;

constexpr int64_t kMostCellWidth = 2048;  // Hd, for which queries fit into shared memory

struct RnnConfig {
  RecurrentEncoder encoder;
  RecurrentDecoder decoder;

  // What s_0 comes from: bahdanau's backward state after the first token, else all final states.
  bool backward_bridge() const {
    return decoder.early() && encoder.directions == Directions::kBoth;
  }
  int64_t bridge_width() const { return backward_bridge() ? encoder.width : encoder.output(); }
};

class RnnAttention : public ModelFamily {
 public:
  RnnAttention(ModelFacts facts, GenerationFacts generation, RnnConfig config)
      : facts_(std::move(facts)), generation_(std::move(generation)), config_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& b, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Status build_prompt(ModelBuilder& b, const StepShape& shape) const override;
  Result<StepResult> build_step(ModelBuilder& b, const StepShape& shape) const override;

 private:
  struct Encoded {
    TensorId states = kNoTensor;   // (B, S, C)
    TensorId initial = kNoTensor;  // (B, state_width)
    AlignmentMemory memory;
  };
  Result<Encoded> encode(ModelBuilder& b, const ForwardShape& shape, const ForwardTaps& taps) const;
  Result<TensorId> embed_target(ModelBuilder& b, int64_t batch, int64_t tokens) const;
  Result<StateCache> state_cache(ModelBuilder& b, const StepShape& shape) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  RnnConfig config_;
};

TextEmbedding words_of(const char* row) {
  TextEmbedding embedding;
  embedding.words = row;
  return embedding;
}

void add_alignment_rows(WeightTable& table, const AlignmentConfig& a) {
  if (a.kind == AlignmentKind::kNone) return;
  const int64_t d = a.decoder_width;
  if (a.kind == AlignmentKind::kBahdanau) {
    table.rows.push_back(linear_row("attention.query", {"W_a"}, a.width, d));
    table.rows.push_back(plain_linear_row("attention.key", {"U_a"}, a.width, a.memory));
  } else {
    table.rows.push_back(plain_linear_row("attention.out", {"W_c"}, d, a.memory + d));
  }
  if (a.kind == AlignmentKind::kGeneral) {
    table.rows.push_back(plain_linear_row("attention.key", {"W_a"}, d, a.memory));
  }
  if (a.kind == AlignmentKind::kConcat) {
    table.rows.push_back(plain_linear_row("attention.query", {"W_a"}, a.width, d + a.memory));
  }
  if (a.kind == AlignmentKind::kLocation) {
    table.rows.push_back(plain_linear_row("attention.query", {"W_a"}, a.width, d));
  }
  if (a.window == Window::kPredictive) {
    table.rows.push_back(plain_linear_row("attention.place", {"W_p"}, d, d));
    table.rows.push_back(plain_linear_row("attention.center", {"v_p"}, 1, d));
  }
}

Status RnnAttention::prepare(const Checkpoint& checkpoint) {
  AlignmentConfig& a = config_.decoder.alignment;
  if (!a.additive()) return {};
  VKF_ASSIGN(a.v, read_floats(checkpoint, "v_a", {a.width}));
  return {};
}

Result<WeightTable> RnnAttention::weight_table(const Checkpoint&) const {
  WeightTable table;
  const RecurrentEncoder& encoder = config_.encoder;
  const RecurrentDecoder& decoder = config_.decoder;
  const AlignmentConfig& a = decoder.alignment;
  const int64_t d = decoder.width();
  const int64_t e = decoder.embedding;
  if (a.additive()) table.ignored = {"v_a"};  // read in prepare
  table.rows.push_back(embedding_row("source.embed", "src_embed.weight", facts_.source_vocab, e));
  table.rows.push_back(embedding_row("target.embed", "tgt_embed.weight", facts_.target_vocab, e));
  add_encoder_cells(table, encoder, "encoder", e);
  std::vector<std::string> bridges = {"bridge"};
  if (decoder.cell == CellKind::kLstm) bridges.push_back("bridge_cell");
  table.rows.push_back(
      linear_row("bridge", bridges, decoder.state_width(), config_.bridge_width()));
  const int64_t fed = decoder.early() ? a.memory : decoder.feeds() ? d : 0;
  add_cell_rows(table, decoder.cell, {"decoder", "decoder", "", e + fed, d});
  add_alignment_rows(table, a);
  const int64_t features = decoder.early() ? d + a.memory + e : d;
  table.rows.push_back(linear_row("head", {"out"}, facts_.target_vocab, features));
  return table;
}

// A padded token before a real one would be read as a real one by the decoder.
Status check_decoder_mask(const TensorMap& inputs) {
  const auto found = inputs.find("decoder_attention_mask");
  if (found == inputs.end() || found->second.shape.size() != 2) return {};
  VKF_ASSIGN(const std::vector<uint8_t> mask, mask_flags(found->first, found->second));
  const int64_t tokens = found->second.shape[1];
  for (size_t i = 1; i < mask.size(); ++i) {
    if (static_cast<int64_t>(i) % tokens == 0 || mask[i] == 0 || mask[i - 1] != 0) continue;
    return invalid_argument(
        message({"[decoder_attention_mask] keeps token ", static_cast<int64_t>(i) % tokens,
                 " of a row after one that it hides, but a recurrent decoder reads every token "
                 "before it; pad decoder_input_ids on the right"}));
  }
  return {};
}

Status RnnAttention::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  VKF_CHECK(check_decoder_mask(inputs));
  add_token_order(result);
  return {};
}

Result<RnnAttention::Encoded> RnnAttention::encode(ModelBuilder& b, const ForwardShape& shape,
                                                   const ForwardTaps& taps) const {
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, {}, words_of("source.embed"), {}, {shape.batch, shape.source}));
  VKF_ASSIGN(RecurrentMemory memory, add_recurrent_encoder(b, config_.encoder, taps, embedded.x));
  TensorId final = memory.forward;
  if (config_.backward_bridge()) {
    final = memory.backward;
  } else if (memory.backward != kNoTensor) {
    b.graph().set_scope("bridge");
    VKF_ASSIGN(final, add_concat_columns(b.graph(), memory.forward, memory.backward));
  }
  Encoded encoded{.states = memory.states};
  VKF_ASSIGN(encoded.initial,
             add_named_linear(b, "bridge", final, {.activation = ActivationKind::kTanh}));
  if (!config_.decoder.aligned()) return encoded;
  const AlignmentConfig& a = config_.decoder.alignment;
  encoded.memory.batch = shape.batch;
  encoded.memory.source = shape.source;
  VKF_ASSIGN(encoded.memory.kv, add_alignment_keys(b, a, memory.states));
  encoded.memory.aux = add_alignment_words(b, a, shape.batch, shape.source);
  b.feed("key_mask", encoded.memory.aux);
  return encoded;
}

Result<TensorId> RnnAttention::embed_target(ModelBuilder& b, int64_t batch, int64_t tokens) const {
  VKF_ASSIGN(EmbeddedTokens embedded, add_text_embedding(b, {}, words_of("target.embed"),
                                                         {.prefix = "decoder_"}, {batch, tokens}));
  return embedded.x;
}

Status RnnAttention::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                   const ForwardTaps& taps) const {
  VKF_ASSIGN(Encoded encoded, encode(b, shape, taps));
  b.mark_output(encoded.states, "encoder_last_hidden_state");
  if (shape.target == 0) return {};
  VKF_ASSIGN(TensorId embedded, embed_target(b, shape.batch, shape.target));
  AlignmentMap map = AlignmentMap::kNone;
  if (taps.attentions == ForwardTaps::Tap::kOn && taps.attention_layer <= 0 &&
      config_.decoder.aligned()) {
    map = taps.raw_scores == ForwardTaps::Tap::kOn ? AlignmentMap::kScores : AlignmentMap::kWeights;
  }
  VKF_ASSIGN(
      DecoderStates decoded,
      add_recurrent_decoder(b, config_.decoder, {embedded, encoded.initial, encoded.memory}, map));
  VKF_ASSIGN(TensorId logits, add_named_linear(b, "head", decoded.features));
  b.mark_output(logits, "logits");
  b.mark_output(decoded.last, "last_hidden_state");
  if (decoded.weights != kNoTensor) b.mark_output(decoded.weights, "cross_attentions.0");
  if (taps.hidden_states == ForwardTaps::Tap::kOn) {
    b.mark_output(embedded, "decoder_hidden_states.0");
  }
  return {};
}

Result<StateCache> RnnAttention::state_cache(ModelBuilder& b, const StepShape& s) const {
  const TensorId cache = b.graph().add_external(
      "recurrent_state", DType::kF32, {s.batch * s.beams, 2, config_.decoder.line_width()});
  return StateCache{.cache = cache,
                    .capacity = static_cast<uint32_t>(s.capacity),
                    .beams = static_cast<uint32_t>(s.beams)};
}

Status RnnAttention::build_prompt(ModelBuilder& b, const StepShape& s) const {
  VKF_ASSIGN(Encoded encoded, encode(b, {.batch = s.batch, .source = s.source}, {}));
  DecoderStates before{.state = encoded.initial};
  if (s.prompt > 1) {
    VKF_ASSIGN(TensorId embedded, embed_target(b, s.batch, s.prompt - 1));
    VKF_ASSIGN(before, add_recurrent_decoder(b, config_.decoder,
                                             {embedded, encoded.initial, encoded.memory},
                                             AlignmentMap::kNone));
  } else if (config_.decoder.feeds()) {
    VKF_ASSIGN(before.fed,
               add_columns(b.graph(), kNoTensor, {}, {s.batch, config_.decoder.width()}));
  }
  b.graph().set_scope("decoder");
  VKF_ASSIGN(StateCache states, state_cache(b, s));
  const auto line = static_cast<uint32_t>(config_.decoder.line_width());
  const auto fed_at = static_cast<uint32_t>(config_.decoder.state_width());
  const uint32_t item = static_cast<uint32_t>(s.beams) * 2 * line;
  for (uint32_t half = 0; half < 2; ++half) {
    VKF_CHECK(add_place_columns(b.graph(), before.state, states.cache, {half * line, item}));
    if (!config_.decoder.feeds()) continue;
    VKF_CHECK(add_place_columns(b.graph(), before.fed, states.cache, {half * line + fed_at, item}));
  }
  if (config_.decoder.aligned()) b.mark_output(encoded.memory.kv, "cross_kv.0");
  return {};
}

Result<StepResult> RnnAttention::build_step(ModelBuilder& b, const StepShape& s) const {
  b.graph().set_step(static_cast<uint32_t>(s.batch * s.beams));
  const StepTensors tensors = add_step_tensors(b, {}, s);
  VKF_ASSIGN(StateCache states, state_cache(b, s));
  states.ancestry = tensors.ancestry;
  states.state = tensors.state;
  DecoderStep step{.cache = states};
  const AlignmentConfig& a = config_.decoder.alignment;
  if (config_.decoder.aligned()) {
    step.memory = {
        .aux = add_alignment_words(b, a, s.batch, s.source), .source = s.source, .batch = s.batch};
    step.memory.kv =
        b.graph().add_external("cross_kv.0", DType::kF32, {s.batch, s.source, a.line_width()});
  }
  VKF_ASSIGN(step.embedded, add_step_embedding(b, {}, words_of("target.embed"), tensors));
  VKF_ASSIGN(const DecoderStates decoded, add_recurrent_step(b, config_.decoder, step));
  StepResult result{.states = decoded.last};
  VKF_ASSIGN(result.logits, add_named_linear(b, "head", decoded.features));
  return result;
}

Result<CellKind> read_cell(const JsonConfig& config) {
  VKF_ASSIGN(std::string name,
             config.get_string_or(config.has("cell_type") ? "cell_type" : "cell", "gru"));
  if (name == "gru") return CellKind::kGru;
  if (name == "lstm") return CellKind::kLstm;
  return unsupported(message({"[cell] in ", config.where(), " is '", name, "'; use gru or lstm"}));
}

Result<AlignmentKind> read_alignment_kind(const JsonConfig& config) {
  VKF_ASSIGN(std::string name, config.get_string_or("attention", "bahdanau"));
  constexpr std::pair<const char*, AlignmentKind> kKinds[] = {
      {"bahdanau", AlignmentKind::kBahdanau},
      {"luong_dot", AlignmentKind::kDot},
      {"luong_general", AlignmentKind::kGeneral},
      {"luong_concat", AlignmentKind::kConcat},
      {"luong_location", AlignmentKind::kLocation},
      {"location", AlignmentKind::kLocation},
      {"none", AlignmentKind::kNone}};
  for (const auto& [known, kind] : kKinds) {
    if (name == known) return kind;
  }
  return unsupported(
      message({"[attention] in ", config.where(), " is '", name,
               "'; use bahdanau, luong_dot, luong_general, luong_concat, luong_location or none"}));
}

Status read_window(const JsonConfig& config, AlignmentConfig& a) {
  VKF_ASSIGN(std::string name, config.get_string_or("attention_window", "global"));
  if (name == "global") return {};
  if (name != "local-m" && name != "local-p") {
    return unsupported(message({"[attention_window] in ", config.where(), " is '", name,
                                "'; use global, local-m or local-p"}));
  }
  if (a.kind == AlignmentKind::kNone) {
    return invalid_argument(message({"[attention_window] in ", config.where(), " is '", name,
                                     "', but attention is 'none', which looks at nothing"}));
  }
  a.window = name == "local-m" ? Window::kMonotonic : Window::kPredictive;
  VKF_ASSIGN(a.reach, get_size(config, "window_size", kMostPositions));
  return {};
}

Result<AlignmentConfig> read_alignment(const JsonConfig& config, int64_t width, int64_t memory) {
  AlignmentConfig a{.decoder_width = width, .memory = memory};
  VKF_ASSIGN(a.kind, read_alignment_kind(config));
  VKF_CHECK(read_window(config, a));
  if (a.additive()) {
    VKF_ASSIGN(a.width, get_size(config, "attention_size", kMostCellWidth));
  }
  if (a.kind == AlignmentKind::kLocation) {
    VKF_ASSIGN(a.width, get_size(config, "location_size", kMostPositions));
  }
  if (a.kind == AlignmentKind::kDot && width != memory) {
    return invalid_argument(message(
        {"[attention] in ", config.where(), " is 'luong_dot', but the decoder's states have ",
         width, " columns and the encoder's ", memory, "; they must be the same"}));
  }
  return a;
}

Result<RnnConfig> read_config(const JsonConfig& config) {
  RnnConfig c;
  VKF_ASSIGN(c.encoder.cell, read_cell(config));
  c.decoder.cell = c.encoder.cell;
  VKF_ASSIGN(c.encoder.width, get_size(config, "encoder_hidden_size", kMostCellWidth));
  VKF_ASSIGN(c.encoder.layers, get_size_or(config, "num_layers", 1, kMostLayers));
  VKF_ASSIGN(bool both, config.get_bool_or("bidirectional", true));
  c.encoder.directions = both ? Directions::kBoth : Directions::kForward;
  VKF_ASSIGN(c.decoder.embedding, get_size(config, "embedding_size", kMostWidth));
  VKF_ASSIGN(int64_t width, get_size(config, "decoder_hidden_size", kMostCellWidth));
  VKF_ASSIGN(c.decoder.alignment, read_alignment(config, width, c.encoder.output()));
  VKF_ASSIGN(bool feeding, config.get_bool_or("input_feeding", false));
  if (feeding) c.decoder.feeding = RecurrentDecoder::Feeding::kYes;
  if (feeding && !c.decoder.aligned()) {
    return invalid_argument(
        message({"[input_feeding] in ", config.where(),
                 " is true, but attention is 'none', so there is nothing to feed"}));
  }
  return c;
}

Result<ModelFacts> read_facts(const JsonConfig& config, const RnnConfig& c) {
  ModelFacts facts{
      .family = "rnn_attention", .architecture = "RnnAttention", .head = HeadKind::kLanguage};
  facts.width = c.decoder.width();
  facts.encoder_layers = c.encoder.layers;
  facts.decoder_layers = 1;
  facts.encoder_heads = 1;
  facts.decoder_heads = 1;
  VKF_ASSIGN(facts.source_vocab, get_size(config, "src_vocab_size", kMostVocabulary));
  VKF_ASSIGN(facts.target_vocab, get_size(config, "tgt_vocab_size", kMostVocabulary));
  // A recurrent model has no positions; this only keeps a pass from asking for absurd memory.
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1 << 14, kMostPositions));
  facts.max_target = facts.max_source;
  // A state is that of the last token, so prompts of other lengths run apart.
  facts.prompts = ModelFacts::Prompts::kExact;
  return facts;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_rnn_attention(const ModelFiles& files) {
  VKF_ASSIGN(RnnConfig config, read_config(files.config));
  VKF_ASSIGN(ModelFacts facts, read_facts(files.config, config));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(files.config, files.generation));
  const char* start = "decoder_start_token_id";
  if (!files.config.has(start) && !files.generation.has(start)) {
    VKF_ASSIGN(tokens.decoder_start, files.config.get_int_or("bos_token_id", tokens.pad));
  }
  return std::unique_ptr<ModelFamily>(
      new RnnAttention(std::move(facts), std::move(tokens), std::move(config)));
}

}  // namespace vkformer
