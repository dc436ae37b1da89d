#include "model/blocks/bert_layers.h"

#include "base/message.h"
#include "model/config_reading.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr const char* kSpans[] = {"start_logits", "end_logits"};

class Bert : public EncoderFamily {
 public:
  explicit Bert(BertConfig bert)
      : EncoderFamily(std::move(bert.facts), std::move(bert.block)),
        names_(std::move(bert.names)),
        embedding_width_(bert.embedding_width),
        head_rows_(std::move(bert.head_rows)) {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  void add_embedding_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  void add_layer_rows(const std::string& to, const std::string& from, WeightTable& table) const;
  TiedWords word_names() const;
  Status read_frequencies(const Checkpoint& checkpoint);

  BertNames names_;
  int64_t embedding_width_;
  std::vector<WeightRow> head_rows_;
  std::string prefix_;  // of this file
};

TiedWords Bert::word_names() const {
  TiedWords words{.words = prefix_ + names_.words};
  if (facts().head != HeadKind::kMasked) return words;
  words.decoder = names_.decoder;
  words.biases = names_.decoder_biases;
  return words;
}

Status Bert::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, names_.prefix, names_.words);
  if (prefix_.empty() && !names_.older_prefix.empty()) {
    prefix_ = name_prefix(checkpoint, names_.older_prefix, names_.words);
  }
  std::vector<HeadConfig>& heads = block().heads;
  if (facts().head == HeadKind::kMasked) {
    heads.back().output = decoder_row(checkpoint, word_names());
  }
  if (!names_.distances.tensor.empty()) {
    BucketTable distances = names_.distances;
    distances.tensor = prefix_ + distances.tensor;
    VKF_CHECK(read_distance_bias(checkpoint, distances, block().stack));
  }
  if (block().form != nullptr) VKF_CHECK(block().form->prepare(checkpoint, prefix_));
  VKF_CHECK(read_frequencies(checkpoint));
  const bool pools =
      !names_.pooler.empty() && checkpoint.find(prefix_ + names_.pooler + ".weight") != nullptr;
  if (facts().head == HeadKind::kNone && pools) {
    heads.push_back({.input = HeadConfig::Input::kToken,
                     .dense = "pooler",
                     .activation = ActivationKind::kTanh,
                     .name = "pooler_output"});
  }
  return {};
}

// Files that store frequencies may have rounded them to halves, as they were in training.
Status Bert::read_frequencies(const Checkpoint& checkpoint) {
  for (const std::string& name : names_.frequencies) {
    if (checkpoint.find(prefix_ + name) == nullptr) continue;
    RotarySetup& rotary = block().stack.rotaries.front();
    VKF_ASSIGN(const std::vector<float> stored,
               read_floats(checkpoint, prefix_ + name, {int64_t{rotary.width} / 2}));
    rotary.scaling.frequencies.assign(stored.begin(), stored.end());
    return {};
  }
  return {};
}

void Bert::add_embedding_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const ModelFacts& f = facts();
  const int64_t e = embedding_width_;
  add_word_rows(checkpoint, word_names(), f.source_vocab, e, table);
  const TextEmbedding& embedding = block().embedding;
  std::vector<std::string> sources;
  std::vector<int64_t> rows;
  if (!embedding.positions.empty()) {
    sources.push_back(prefix_ + names_.positions);
    rows.push_back(f.max_source + embedding.position_offset);
  }
  if (f.source_tokens.types > 0) {
    sources.push_back(prefix_ + names_.types);
    rows.push_back(f.source_tokens.types);
  }
  if (!sources.empty()) {
    const std::string& to = embedding.positions.empty() ? embedding.types : embedding.positions;
    table.rows.push_back(table_row(to, std::move(sources), std::move(rows), e));
  }
  if (!embedding.norm.empty()) {
    table.rows.push_back(norm_row(embedding.norm, prefix_ + names_.embedding_norm, e));
  }
  if (!names_.projection.empty()) {
    table.rows.push_back(
        linear_row("embedding.projection", {prefix_ + names_.projection}, f.width, e));
  }
}

void Bert::add_layer_rows(const std::string& to, const std::string& from,
                          WeightTable& table) const {
  const StackConfig& stack = block().stack;
  const int64_t d = stack.width;
  const int64_t inner = stack.heads * stack.head();
  const BertLayerNames& n = names_.layer;
  const auto add = [&](WeightRow row, BertNames::Bias bias) {
    if (bias == BertNames::Bias::kNo) row.biases.clear();
    table.rows.push_back(std::move(row));
  };
  const std::vector<std::string> apart = {from + n.query, from + n.key, from + n.value};
  WeightRow qkv = linear_row(to + ".self.qkv", n.qkv.empty() ? apart : std::vector{from + n.qkv},
                             stack.qkv_width(), d);
  const int64_t kv = stack.kv() * stack.head();
  if (n.qkv.empty()) qkv.source_rows = {inner, kv, kv};
  add(std::move(qkv), names_.qkv_bias);
  add(linear_row(to + ".self.out", {from + n.out}, d, inner), names_.out_bias);
  add(norm_row(to + ".self.norm", from + n.out_norm, d), names_.norm_bias);
  if (n.gate.empty()) {
    add(linear_row(to + ".ffn.up", {from + n.up}, stack.ffn, d), names_.ffn_bias);
  } else {
    add(in_gate_pairs(linear_row(to + ".ffn.up", {from + n.gate, from + n.up}, 2 * stack.ffn, d)),
        names_.ffn_bias);
  }
  add(linear_row(to + ".ffn.down", {from + n.down}, d, stack.ffn), names_.ffn_bias);
  add(norm_row(to + ".ffn.norm", from + n.down_norm, d), names_.norm_bias);
  if (block().form != nullptr) block().form->add_layer_rows(to, from, d, table);
}

Result<WeightTable> Bert::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_embedding_rows(checkpoint, table);
  for (size_t i = 0; i < names_.layers.size(); ++i) {
    add_layer_rows(block().stack.rows + "." + std::to_string(i), prefix_ + names_.layers[i] + ".",
                   table);
  }
  if (!names_.final_norm.empty()) {
    WeightRow row =
        norm_row(block().stack.rows + ".norm", prefix_ + names_.final_norm, facts().width);
    if (names_.norm_bias == BertNames::Bias::kNo) row.biases.clear();
    table.rows.push_back(std::move(row));
  }
  for (const HeadConfig& head : block().heads) {
    if (head.dense != "pooler") continue;
    const int64_t d = facts().width;
    table.rows.push_back(linear_row("pooler", {prefix_ + names_.pooler}, d, d));
  }
  table.rows.insert(table.rows.end(), head_rows_.begin(), head_rows_.end());
  if (block().form != nullptr) block().form->add_rows(prefix_, table);
  table.ignored.insert(table.ignored.end(), names_.ignored.begin(), names_.ignored.end());
  // A buffer that older versions of the library saved.
  table.ignored.push_back("*embeddings.position_ids");
  table.ignored.push_back("*embeddings.token_type_ids");
  if (!names_.distances.tensor.empty()) {
    table.ignored.push_back(prefix_ + names_.distances.tensor);
  }
  if (!names_.pooler.empty()) table.ignored.push_back(prefix_ + names_.pooler + ".*");
  return table;
}

Status refuse_variants(const JsonConfig& config, const char* position_type) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    VKF_ASSIGN(bool set, config.get_bool_or(key, false));
    if (set) {
      return unsupported(message({"[", key, "] is true in ", config.where(),
                                  "; this family is supported as an encoder only"}));
    }
  }
  VKF_ASSIGN(std::string positions, config.get_string_or("position_embedding_type", position_type));
  if (positions == position_type) return {};
  return unsupported(message({"[position_embedding_type] is '", positions, "' in ", config.where(),
                              "; only '", position_type, "' is supported"}));
}

Status read_stack(const JsonConfig& config, const BertDefaults& d, StackConfig& stack) {
  stack.rows = "encoder";
  stack.order = StackConfig::Order::kPost;
  VKF_ASSIGN(stack.width, get_size_or(config, d.width_key, d.width, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, d.layers_key, d.layers, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, d.heads_key, d.heads, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, d.ffn_key, d.ffn, kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, d.activation_key, d.activation));
  if (d.head_width_key != nullptr && config.has(d.head_width_key)) {
    VKF_ASSIGN(stack.head_width, get_size(config, d.head_width_key, kMostHeadWidth));
    if (stack.heads * stack.head_width <= kMostWidth) return {};
    return invalid_file(message(
        {"[", d.head_width_key, "] in ", config.where(), " is ", stack.head_width, " with ",
         stack.heads, " heads, but heads side by side may be at ", "most ", kMostWidth, " wide"}));
  }
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  return {};
}

Status read_facts(const JsonConfig& config, const BertDefaults& defaults, ModelFacts& facts) {
  VKF_ASSIGN(facts.source_vocab,
             get_size_or(config, "vocab_size", defaults.vocab, kMostVocabulary));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, defaults.positions_key, defaults.positions, kMostPositions));
  if (defaults.types > 0) {
    VKF_ASSIGN(facts.source_tokens.types,
               get_size_or(config, "type_vocab_size", defaults.types, kMostPositions));
  }
  VKF_ASSIGN(facts.head, read_encoder_head(config, facts.architecture));
  if (facts.head == HeadKind::kMasked) facts.target_vocab = facts.source_vocab;
  if (facts.head == HeadKind::kSequence || facts.head == HeadKind::kTokens) {
    VKF_ASSIGN(facts.labels, get_labels(config));
  }
  return {};
}

int64_t classes_of(const BertConfig& bert) {
  return static_cast<int64_t>(bert.facts.labels.size());
}

}  // namespace

Result<HeadKind> read_encoder_head(const JsonConfig& config, const std::string& architecture) {
  const HeadKind head = head_of(architecture);
  const bool unknown = head == HeadKind::kNone && architecture.find("For") != std::string::npos;
  if (head != HeadKind::kLanguage && !unknown) return head;
  return unsupported(
      message({"[architectures] of ", config.where(), " names '", architecture,
               "', whose head this family does not have; supported are the bare model and heads "
               "for masked words, sequence and token classification, and question answering"}));
}

Result<BertConfig> read_bert_config(const ModelFiles& files, const BertDefaults& defaults,
                                    const std::string& base_class) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_variants(config, defaults.position_type));
  BertConfig bert;
  ModelFacts& facts = bert.facts;
  StackConfig& stack = bert.block.stack;
  facts.kind = ModelKind::kEncoder;
  facts.sentence = files.sentence;
  VKF_ASSIGN(facts.family, config.get_string("model_type"));
  VKF_ASSIGN(facts.architecture, get_architecture(config, base_class));
  VKF_CHECK(read_stack(config, defaults, stack));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, defaults.epsilon_key, defaults.epsilon));
  VKF_CHECK(read_facts(config, defaults, facts));
  facts.width = stack.width;
  facts.encoder_layers = stack.layers;
  facts.encoder_heads = stack.heads;
  bert.embedding_width = stack.width;
  bert.block.embedding = {.words = "words",
                          .positions = "positions",
                          .tokens = facts.source_tokens,
                          .norm = "embedding.norm"};
  return bert;
}

Status read_positions_after_pad(const JsonConfig& config, BertConfig& bert) {
  VKF_ASSIGN(int64_t pad, config.get_int_or("pad_token_id", 1));
  return set_positions_after_pad(config, pad, bert);
}

Status set_positions_after_pad(const JsonConfig& config, int64_t pad, BertConfig& bert) {
  ModelFacts& facts = bert.facts;
  const int64_t rows = facts.max_source;
  if (pad < 0 || pad >= rows - 1) {
    return invalid_file(message({"[pad_token_id] in ", config.where(), " is ", pad,
                                 ", but positions begin after it and max_position_embeddings is ",
                                 rows, "; it must lie between 0 and ", rows - 2}));
  }
  facts.source_tokens.positions = TokenFacts::Positions::kFromIds;
  facts.source_tokens.pad = pad;
  facts.max_source = rows - pad - 1;
  bert.block.embedding.tokens = facts.source_tokens;
  bert.block.embedding.position_offset = pad + 1;
  return {};
}

Status read_rotary_positions(const JsonConfig& config, double theta, BertConfig& bert) {
  StackConfig& stack = bert.block.stack;
  const int64_t head = stack.head();
  if (head % 2 != 0) {
    return invalid_file(message({"[num_attention_heads] in ", config.where(), " makes heads ", head,
                                 " wide; rotary positions turn an even number"}));
  }
  VKF_ASSIGN(uint32_t width, read_rotary_width(config, head, 1.0));
  if (width != head) {
    return unsupported(
        message({"[partial_rotary_factor] in ", config.where(), " leaves ", width, " of ", head,
                 " columns of a head to be turned; this family turns ", "whole heads"}));
  }
  RotaryScaling scaling;
  VKF_ASSIGN(scaling,
             read_model_rotary(config, {.theta = theta, .max_positions = bert.facts.max_source}));
  VKF_CHECK(check_rotary_scaling(scaling, head, config.where()));
  stack.rotaries = {{.width = width, .scaling = std::move(scaling)}};
  stack.kinds = {{.rotary = 0}};
  drop_position_table(bert);
  return {};
}

void drop_position_table(BertConfig& bert) {
  bert.block.embedding.positions.clear();
  if (bert.facts.source_tokens.types > 0) bert.block.embedding.types = "types";
}

std::vector<HeadConfig> span_heads(const HeadConfig& shape) {
  std::vector<HeadConfig> heads;
  for (const char* name : kSpans) {
    HeadConfig head = shape;
    head.output = head.name = name;
    head.squeeze = HeadConfig::Squeeze::kYes;
    heads.push_back(std::move(head));
  }
  return heads;
}

std::vector<WeightRow> span_rows(const std::string& module, int64_t width) {
  std::vector<WeightRow> rows;
  for (const char* name : kSpans) {
    WeightRow row = linear_row(name, {module}, 1, width);
    row.first_row = static_cast<int64_t>(rows.size());
    row.source_rows = {2};
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_shared_head(BertConfig& bert) {
  const int64_t d = bert.facts.width;
  if (bert.facts.head == HeadKind::kTokens) {
    bert.block.heads.push_back({.output = "classifier"});
    bert.head_rows.push_back(linear_row("classifier", {"classifier"}, classes_of(bert), d));
  } else if (bert.facts.head == HeadKind::kSpans) {
    bert.block.heads = span_heads({});
    bert.head_rows = span_rows("qa_outputs", d);
  }
}

BertNames bert_names(const std::string& prefix, int64_t layers) {
  BertNames names{.prefix = prefix, .pooler = "pooler.dense"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "cls.predictions.decoder";
  names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
  names.ignored = {"cls.*", "classifier.*", "qa_outputs.*"};
  return names;
}

void add_bert_head(BertConfig& bert) {
  const std::string head = "cls.predictions.transform.";
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, head + "dense", bert.block.stack.activation, head + "LayerNorm");
      break;
    case HeadKind::kSequence:
      add_pooled_head(bert, "classifier");
      break;
    default:
      add_shared_head(bert);
  }
}

void add_roberta_head(BertConfig& bert) {
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "lm_head.dense", ActivationKind::kGelu, "lm_head.layer_norm");
      break;
    case HeadKind::kSequence:
      add_sequence_head(bert, "classifier.dense", ActivationKind::kTanh, "classifier.out_proj");
      break;
    default:
      add_shared_head(bert);
  }
}

void add_sequence_head(BertConfig& bert, const std::string& dense, ActivationKind activation,
                       const std::string& output) {
  const int64_t d = bert.facts.width;
  bert.block.heads.push_back({.input = HeadConfig::Input::kToken,
                              .dense = "head.dense",
                              .activation = activation,
                              .output = "classifier"});
  bert.head_rows.push_back(linear_row("head.dense", {dense}, d, d));
  bert.head_rows.push_back(linear_row("classifier", {output}, classes_of(bert), d));
}

void add_pooled_head(BertConfig& bert, const std::string& output) {
  bert.block.heads.push_back({.input = HeadConfig::Input::kToken,
                              .dense = "pooler",
                              .activation = ActivationKind::kTanh,
                              .output = "classifier"});
  bert.head_rows.push_back(linear_row("classifier", {output}, classes_of(bert), bert.facts.width));
}

void add_masked_head(BertConfig& bert, const std::string& dense, ActivationKind activation,
                     const std::string& norm) {
  const int64_t e = bert.embedding_width;
  bert.block.heads.push_back(
      {.dense = "head.dense", .activation = activation, .norm = "head.norm", .output = "words"});
  bert.head_rows.push_back(linear_row("head.dense", {dense}, e, bert.facts.width));
  bert.head_rows.push_back(norm_row("head.norm", norm, e));
}

std::string decoder_row(const Checkpoint& checkpoint, const TiedWords& names) {
  const bool own = checkpoint.find(names.decoder + ".weight") != nullptr;
  return own ? "decoder" : "words";
}

void add_word_rows(const Checkpoint& checkpoint, const TiedWords& names, int64_t vocab,
                   int64_t width, WeightTable& table) {
  table.rows.push_back(embedding_row("words", names.words, vocab, width));
  if (names.decoder.empty()) return;
  if (decoder_row(checkpoint, names) == "decoder") {
    table.rows.push_back(embedding_row("decoder", names.decoder + ".weight", vocab, width));
  }
  if (names.biases.empty()) return;
  table.rows.back().biases = {first_present(checkpoint, names.biases)};
}

std::unique_ptr<ModelFamily> make_bert(BertConfig bert) {
  return std::make_unique<Bert>(std::move(bert));
}

}  // namespace vkformer
