// Perceiver IO (Jaegle et al., "Perceiver IO: A General Architecture for Structured Inputs &
// Outputs", 2021). A few latents read the input by cross-attention and attend to each other. The
// queries of a decoder read them.
#include <cmath>
#include <numbers>

#include "base/message.h"
#include "model/blocks/latent_layer.h"
#include "model/blocks/picture_embedding.h"
#include "model/blocks/text_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "ops/score_terms.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

// What the input is and how it becomes rows.
enum class Front : uint8_t {
  kArrays,   // rows as they are
  kText,     // words and positions
  kLearned,  // pixels by a projection, learned positions
  kFourier,  // pixels, sines and cosines of their positions
};

// Constants that the library has in its classes, not in the configuration.
constexpr int64_t kWordHeads = 8;
constexpr int64_t kWordScores = 256;
constexpr int64_t kPixelWidth = 256;  // of projected pixels, and of their positions
constexpr int64_t kColors = 3;
constexpr int64_t kBands = 64;           // of Fourier positions
constexpr int64_t kFourierPixels = 224;  // a side, whose half is the highest frequency
constexpr int64_t kFourierWidth = 2 + 4 * kBands;
constexpr int64_t kMostPerceiverPixels = 1 << 22;

struct PerceiverConfig {
  Front front = Front::kArrays;
  int64_t latents = 0;              // N
  int64_t blocks = 1;               // passes over the same layers
  int64_t model = 0;                // width of words and of arrays
  int64_t input = 0;                // width of what the latents read
  int64_t picture = 0;              // pixels a side, of learned positions
  std::vector<LatentLayer> layers;  // of a block
  LatentLayer cross;
  LatentLayer decoder;
  int64_t queries = 0;  // rows of the decoder's queries; 0: no decoder
};

class Perceiver : public ModelFamily {
 public:
  Perceiver(ModelFacts facts, PerceiverConfig config)
      : facts_(std::move(facts)), config_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  void add_front_rows(const std::string& from, WeightTable& table) const;
  void add_head_rows(const std::string& from, WeightTable& table) const;
  Status read_rows(const Tensor& tensor, ForwardInputs& result) const;
  Status read_words(const Tensor& tensor, ForwardInputs& result) const;
  Status read_pixels(const Tensor& tensor, ForwardInputs& result) const;
  Result<TensorId> embed(ModelBuilder& b, const ForwardShape& shape) const;
  Result<TensorId> embed_pixels(ModelBuilder& b, const ForwardShape& shape) const;
  Status add_head(ModelBuilder& b, const LatentRun& run, TensorId latents) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  PerceiverConfig config_;
};

// --- Weights
// --------------------------------------------------------------------------------------

void Perceiver::add_front_rows(const std::string& from, WeightTable& table) const {
  const std::string at = from + "input_preprocessor.";
  const int64_t d = config_.model;
  if (config_.front == Front::kText) {
    WeightRow words = plain_linear_row("words", {at + "embeddings"}, facts_.source_vocab, d);
    // The same matrix gives the logits.
    if (facts_.head == HeadKind::kMasked) words.biases = {"embedding_decoder.bias"};
    table.rows.push_back(std::move(words));
    table.rows.push_back(
        table_row("positions", {at + "position_embeddings.weight"}, {facts_.max_source}, d));
  } else if (config_.front == Front::kLearned) {
    table.rows.push_back(linear_row("pixels", {at + "convnet_1x1"}, kPixelWidth, kColors));
    table.rows.push_back(table_row("positions", {at + "position_embeddings.position_embeddings"},
                                   {config_.picture * config_.picture}, kPixelWidth));
    table.rows.push_back(linear_row("positions.projection", {at + "positions_projection"},
                                    kPixelWidth, kPixelWidth));
  }
}

void Perceiver::add_head_rows(const std::string& from, WeightTable& table) const {
  if (config_.queries == 0) return;
  const bool classifies = facts_.head == HeadKind::kSequence;
  const std::string at = from + (classifies ? "decoder.decoder." : "decoder.");
  table.rows.push_back(table_row("queries", {at + "output_position_encodings.position_embeddings"},
                                 {config_.queries}, config_.decoder.width));
  LatentLayer decoder = config_.decoder;
  decoder.from = at + decoder.from;
  add_latent_layer_rows(decoder, table);
  if (!classifies) return;
  const auto classes = static_cast<int64_t>(facts_.labels.size());
  table.rows.push_back(
      linear_row("classifier", {at + "final_layer"}, classes, config_.decoder.width));
}

Result<WeightTable> Perceiver::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const std::string from = name_prefix(checkpoint, "perceiver.", "embeddings.latents");
  table.rows.push_back(
      table_row("latents", {from + "embeddings.latents"}, {config_.latents}, facts_.width));
  add_front_rows(from, table);
  LatentLayer cross = config_.cross;
  cross.from = from + cross.from;
  add_latent_layer_rows(cross, table);
  for (LatentLayer layer : config_.layers) {
    layer.from = from + layer.from;
    add_latent_layer_rows(layer, table);
  }
  add_head_rows(from, table);
  return table;
}

// --- Inputs
// ---------------------------------------------------------------------------------------

Status Perceiver::read_rows(const Tensor& tensor, ForwardInputs& result) const {
  const Shape& s = tensor.shape;
  if (s.size() != 3 || s[0] < 1 || s[1] < 1 || s[2] != config_.model) {
    return invalid_argument(message({"[inputs] has shape ", shape_text(s), ", but must be (B, S, ",
                                     config_.model, "), the d_model of this model"}));
  }
  VKF_ASSIGN(const std::vector<float> values, tensor.to_floats());
  result.words["inputs"] = float_words(values);
  result.shape.batch = s[0];
  result.shape.source = s[1];
  return {};
}

Status Perceiver::read_words(const Tensor& tensor, ForwardInputs& result) const {
  const Shape& s = tensor.shape;
  if (s.size() != 2 || s[0] < 1 || s[1] < 1 || s[1] > facts_.max_source) {
    return invalid_argument(
        message({"[inputs] has shape ", shape_text(s), ", but must be (B, S) with at most ",
                 facts_.max_source, " tokens a row"}));
  }
  VKF_ASSIGN(const std::vector<int64_t> ids, tensor.to_ints());
  for (const int64_t id : ids) {
    if (id >= 0 && id < facts_.source_vocab) continue;
    return invalid_argument(
        message({"[inputs] holds ", id, ", but this model knows 0 to ", facts_.source_vocab - 1}));
  }
  result.words["input_ids"].assign(ids.begin(), ids.end());
  result.shape.batch = s[0];
  result.shape.source = s[1];
  return {};
}

Status Perceiver::read_pixels(const Tensor& tensor, ForwardInputs& result) const {
  const Shape& s = tensor.shape;
  const int64_t side = config_.picture;
  bool fits = s.size() == 4 && s[0] >= 1 && s[1] == kColors && s[2] >= 1 && s[3] >= 1 &&
              s[2] <= kMostPerceiverPixels && s[3] <= kMostPerceiverPixels &&
              s[2] * s[3] <= kMostPerceiverPixels;
  if (side > 0) fits = fits && s[2] == side && s[3] == side;
  if (!fits) {
    const std::string size = side > 0 ? std::to_string(side) : std::string("any");
    return invalid_argument(message({"[inputs] has shape ", shape_text(s), ", but must be (B, ",
                                     kColors, ", ", size, ", ", size, ") with at most ",
                                     kMostPerceiverPixels, " pixels; resize the picture to that"}));
  }
  VKF_ASSIGN(const std::vector<float> values, tensor.to_floats());
  result.words["pixel_values"] = float_words(values);
  result.shape = {.batch = s[0], .source = s[2] * s[3], .height = s[2], .width = s[3]};
  return {};
}

std::vector<std::string> Perceiver::input_names() const {
  std::vector<std::string> names = {"attention_mask", "inputs"};
  if (config_.front == Front::kText) names.emplace_back("input_ids");
  if (config_.front != Front::kText && config_.front != Front::kArrays) {
    names.emplace_back("pixel_values");
  }
  return names;
}

Status Perceiver::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  const char* other = config_.front == Front::kText ? "input_ids" : "pixel_values";
  auto found = inputs.find("inputs");
  if (found == inputs.end() && config_.front != Front::kArrays) found = inputs.find(other);
  if (found == inputs.end()) return not_found("[inputs] is missing from the inputs");
  switch (config_.front) {
    case Front::kArrays:
      VKF_CHECK(read_rows(found->second, result));
      break;
    case Front::kText:
      VKF_CHECK(read_words(found->second, result));
      break;
    case Front::kLearned:
    case Front::kFourier:
      VKF_CHECK(read_pixels(found->second, result));
      break;
  }
  const int64_t batch = result.shape.batch;
  const int64_t tokens = result.shape.source;
  std::vector<uint8_t> kept(static_cast<size_t>(batch * tokens), 1);
  const auto mask = inputs.find("attention_mask");
  if (mask != inputs.end()) {
    if (mask->second.shape != Shape{batch, tokens}) {
      return invalid_argument(
          message({"[attention_mask] has shape ", shape_text(mask->second.shape),
                   ", but the inputs have ", shape_text({batch, tokens})}));
    }
    VKF_ASSIGN(kept, mask_flags("attention_mask", mask->second));
  }
  result.words["key_mask"] = pack_key_mask(kept, batch, tokens);
  return {};
}

// --- Graph
// ----------------------------------------------------------------------------------------

// (height * width, 258): row and column from -1 to 1, then sin and cos of pi f times them. The 64
// frequencies f go from 1 to half the pixels a side (Jaegle et al., 2021, section 3.2).
std::vector<float> fourier_positions(int64_t height, int64_t width) {
  const auto at = [](int64_t index, int64_t count) {
    if (count == 1) return -1.0;
    return -1.0 + 2.0 * static_cast<double>(index) / static_cast<double>(count - 1);
  };
  std::vector<float> values;
  for (int64_t p = 0; p < height * width; ++p) {
    const double place[] = {at(p / width, height), at(p % width, width)};
    for (const double x : place) values.push_back(static_cast<float>(x));
    for (int cosine = 0; cosine < 2; ++cosine) {
      for (const double x : place) {
        for (int64_t k = 0; k < kBands; ++k) {
          const double f = 1.0 + (static_cast<double>(kFourierPixels) / 2 - 1.0) *
                                     static_cast<double>(k) / static_cast<double>(kBands - 1);
          const double angle = std::numbers::pi * x * f;
          values.push_back(static_cast<float>(cosine != 0 ? std::cos(angle) : std::sin(angle)));
        }
      }
    }
  }
  return values;
}

// (B, height * width, C): [colors | positions].
Result<TensorId> Perceiver::embed_pixels(ModelBuilder& b, const ForwardShape& shape) const {
  const bool learned = config_.front == Front::kLearned;
  const TensorId pixels = add_pixel_values(b, kColors, shape);
  b.graph().set_scope("pixels");
  VKF_ASSIGN(TensorId x, add_unfold(b.graph(), pixels, {}));
  TensorId positions = kNoTensor;
  if (learned) {
    VKF_ASSIGN(x, add_named_linear(b, "pixels", x));
    VKF_ASSIGN(positions, b.table("positions"));
    VKF_ASSIGN(positions, add_named_linear(b, "positions.projection", positions));
  } else {
    positions = b.host_floats("positions", {shape.source, kFourierWidth},
                              fourier_positions(shape.height, shape.width));
  }
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape.batch * shape.source; ++i) {
    rows.push_back(static_cast<uint32_t>(i % shape.source));
  }
  const TensorId indices =
      b.host_tensor("positions.order", DType::kU32, {shape.batch, shape.source}, std::move(rows));
  VKF_ASSIGN(positions, add_gather_rows(b.graph(), {.x = positions, .indices = indices}));
  return add_concat_columns(b.graph(), x, positions);
}

// (B, S, C).
Result<TensorId> Perceiver::embed(ModelBuilder& b, const ForwardShape& shape) const {
  if (config_.front == Front::kText) {
    const TextEmbedding embedding{.words = "words", .positions = "positions"};
    VKF_ASSIGN(const EmbeddedTokens tokens,
               add_text_embedding(b, {}, embedding, {}, {shape.batch, shape.source}));
    return tokens.x;
  }
  if (config_.front != Front::kArrays) return embed_pixels(b, shape);
  const TensorId x =
      b.graph().add_external("inputs", DType::kF32, {shape.batch, shape.source, config_.model});
  b.feed("inputs", x);
  return x;
}

// `run` has the batch and the taps; latents (B, N, D).
Status Perceiver::add_head(ModelBuilder& b, const LatentRun& run, TensorId latents) const {
  if (config_.queries == 0) return {};
  LatentRun reads = run;
  reads.queries = config_.queries;
  reads.keys = config_.latents;
  reads.inputs = latents;
  reads.map = run.taps.attention_layer <= 0 ? "cross_attentions.1" : "";
  VKF_ASSIGN(const TensorId queries, b.table("queries"));
  VKF_ASSIGN(TensorId x, add_latent_layer(b, config_.decoder, reads, queries));
  const bool classifies = facts_.head == HeadKind::kSequence;
  VKF_ASSIGN(x, add_named_linear(b, classifies ? "classifier" : "words", x));
  b.mark_output(x, "logits");
  if (classifies) b.graph().tensor(x).shape = {run.batch, b.graph().tensor(x).shape.back()};
  return {};
}

// The input of a layer as an output, counted as the library does. The states between two blocks are
// two entries of its list. So they are copied.
Status show_states(ModelBuilder& b, TensorId x, int64_t layer, int64_t layers_per_block) {
  const int64_t entry = layer + layer / layers_per_block;
  b.mark_output(x, "hidden_states." + std::to_string(entry));
  if (layer == 0 || layer % layers_per_block != 0) return {};
  const Shape shape = b.graph().tensor(x).shape;
  VKF_ASSIGN(const TensorId copy,
             add_columns(b.graph(), x, {.stride = static_cast<uint32_t>(shape.back())}, shape));
  b.mark_output(copy, "hidden_states." + std::to_string(entry - 1));
  return {};
}

Status Perceiver::build_forward(ModelBuilder& b, const ForwardShape& asked,
                                const ForwardTaps& taps) const {
  // A plan says how many pixels a side, a run also how many there are.
  ForwardShape shape = asked;
  if (config_.picture > 0) shape.height = shape.width = config_.picture;
  if (config_.front >= Front::kLearned) shape.source = shape.height * shape.width;
  VKF_ASSIGN(const TensorId inputs, embed(b, shape));
  LatentRun run{.batch = shape.batch, .queries = config_.latents, .taps = taps};
  const auto chosen = [&](int64_t layer) {
    return taps.attention_layer < 0 || taps.attention_layer == layer;
  };
  LatentRun reads = run;
  reads.keys = shape.source;
  reads.inputs = inputs;
  reads.mask =
      b.graph().add_external("key_mask", DType::kU32, {shape.batch * ((shape.source + 31) / 32)});
  b.feed("key_mask", reads.mask);
  if (chosen(0)) reads.map = "cross_attentions.0";
  VKF_ASSIGN(TensorId x, b.table("latents"));
  VKF_ASSIGN(x, add_latent_layer(b, config_.cross, reads, x));
  run.keys = config_.latents;
  const auto count = static_cast<int64_t>(config_.layers.size());
  for (int64_t l = 0; l < config_.blocks * count; ++l) {
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      VKF_CHECK(show_states(b, x, l, count));
    }
    run.map = chosen(l) ? "attentions." + std::to_string(l) : std::string();
    VKF_ASSIGN(x, add_latent_layer(b, config_.layers[static_cast<size_t>(l % count)], run, x));
  }
  b.mark_output(x, "last_hidden_state");
  return add_head(b, run, x);
}

// --- Configuration
// --------------------------------------------------------------------------------

struct PerceiverClass {
  const char* name;
  Front front;
  HeadKind head;
};

constexpr PerceiverClass kClasses[] = {
    {"PerceiverModel", Front::kArrays, HeadKind::kNone},
    {"PerceiverForMaskedLM", Front::kText, HeadKind::kMasked},
    {"PerceiverForSequenceClassification", Front::kText, HeadKind::kSequence},
    {"PerceiverForImageClassificationLearned", Front::kLearned, HeadKind::kSequence},
    {"PerceiverForImageClassificationFourier", Front::kFourier, HeadKind::kSequence},
};

Status read_class(const JsonConfig& config, ModelFacts& facts, PerceiverConfig& c) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, "PerceiverModel"));
  for (const PerceiverClass& known : kClasses) {
    if (facts.architecture != known.name) continue;
    c.front = known.front;
    facts.head = known.head;
    if (facts.head != HeadKind::kSequence) return {};
    VKF_ASSIGN(facts.labels, get_labels(config));
    return {};
  }
  std::string names;
  for (const PerceiverClass& known : kClasses)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return unsupported(
      message({"[architectures] of ", config.where(), " names '", facts.architecture,
               "', which the perceiver family does not have; supported are ", names}));
}

// A size that may be null, which is 0 here.
Result<int64_t> optional_size(const JsonConfig& config, const std::string& key) {
  if (!config.has(key)) return int64_t{0};
  return get_size(config, key, kMostWidth);
}

Status read_fronts(const JsonConfig& config, ModelFacts& facts, PerceiverConfig& c) {
  VKF_ASSIGN(c.model, get_size_or(config, "d_model", 768, kMostWidth));
  c.input = c.model;
  if (c.front == Front::kText) {
    VKF_ASSIGN(facts.source_vocab, get_size_or(config, "vocab_size", 262, kMostVocabulary));
    VKF_ASSIGN(facts.max_source,
               get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
    if (facts.head == HeadKind::kMasked) facts.target_vocab = facts.source_vocab;
  } else if (c.front == Front::kLearned) {
    VKF_ASSIGN(c.picture, get_size_or(config, "image_size", 56, 2048));
    c.input = 2 * kPixelWidth;
  } else if (c.front == Front::kFourier) {
    c.input = kColors + kFourierWidth;
  }
  return {};
}

// Layers that read the input, and those of the latents among themselves.
Status read_layers(const JsonConfig& config, int64_t width, PerceiverConfig& c) {
  VKF_ASSIGN(const ActivationKind activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(const int64_t qk, optional_size(config, "qk_channels"));
  VKF_ASSIGN(const int64_t v, optional_size(config, "v_channels"));
  VKF_ASSIGN(const bool residual, config.get_bool_or("use_query_residual", true));
  VKF_ASSIGN(const std::string shaped,
             config.get_string_or("cross_attention_shape_for_attention", "kv"));
  if (shaped != "kv" && shaped != "q") {
    return invalid_file(message({"[cross_attention_shape_for_attention] in ", config.where(),
                                 " is '", shaped, "', but must be kv or q"}));
  }
  LatentLayer& cross = c.cross;
  cross = {.rows = "cross", .from = "encoder.cross_attention.", .width = width, .input = c.input};
  cross.activation = activation;
  if (!residual) cross.residual = LatentLayer::Residual::kNo;
  cross.qk = qk > 0 ? qk : (shaped == "q" ? width : c.input);
  cross.v = v > 0 ? v : cross.qk;
  VKF_ASSIGN(cross.heads, get_size_or(config, "num_cross_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(const int64_t wider, get_size_or(config, "cross_attention_widening_factor", 1, 64));
  cross.ffn = wider * width;
  VKF_CHECK(check_latent_layer(cross, config.where()));
  LatentLayer self{.width = width, .qk = qk > 0 ? qk : width, .activation = activation};
  self.v = v > 0 ? v : self.qk;
  VKF_ASSIGN(self.heads, get_size_or(config, "num_self_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(const int64_t widened, get_size_or(config, "self_attention_widening_factor", 1, 64));
  self.ffn = widened * width;
  VKF_ASSIGN(const int64_t count,
             get_size_or(config, "num_self_attends_per_block", 26, kMostLayers));
  VKF_ASSIGN(c.blocks, get_size_or(config, "num_blocks", 1, kMostLayers));
  if (c.blocks * count > kMostLayers) {
    return invalid_file(message({"[num_blocks] in ", config.where(), " is ", c.blocks,
                                 " and [num_self_attends_per_block] ", count,
                                 ", which is more than ", kMostLayers, " layers in all"}));
  }
  for (int64_t i = 0; i < count; ++i) {
    self.rows = "layers." + std::to_string(i);
    self.from = "encoder.self_attends." + std::to_string(i) + ".";
    VKF_CHECK(check_latent_layer(self, config.where()));
    c.layers.push_back(self);
  }
  return {};
}

// What reads the latents: as many queries as positions for words, one for a class.
Status read_decoder(const JsonConfig& config, const ModelFacts& facts, PerceiverConfig& c) {
  if (facts.head == HeadKind::kNone) return {};
  LatentLayer& d = c.decoder;
  d = {.rows = "decoder", .from = "decoding_cross_attention.", .input = facts.width};
  d.activation = c.cross.activation;
  if (facts.head == HeadKind::kMasked) {
    c.queries = facts.max_source;
    d.width = d.v = c.model;
    d.qk = kWordScores;
    d.heads = kWordHeads;
    d.residual = LatentLayer::Residual::kNo;
  } else {
    c.queries = 1;
    d.width = d.qk = d.v = facts.width;
  }
  d.ffn = d.width;
  return check_latent_layer(d, config.where());
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_perceiver(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "perceiver", .kind = ModelKind::kEncoder};
  facts.source = SourceKind::kArrays;
  PerceiverConfig c;
  VKF_CHECK(read_class(config, facts, c));
  VKF_CHECK(read_fronts(config, facts, c));
  VKF_ASSIGN(c.latents, get_size_or(config, "num_latents", 256, kMostPositions));
  VKF_ASSIGN(facts.width, get_size_or(config, "d_latents", 1280, kMostWidth));
  VKF_CHECK(read_layers(config, facts.width, c));
  VKF_CHECK(read_decoder(config, facts, c));
  facts.encoder_layers = c.blocks * static_cast<int64_t>(c.layers.size());
  facts.encoder_heads = c.layers.front().heads;
  return std::unique_ptr<ModelFamily>(new Perceiver(std::move(facts), std::move(c)));
}

}  // namespace vkformer
