// ModernBERT (Warner et al., 2024). It is a pre-norm encoder with rotary positions, gated
// feed-forward layers, and layers that see the whole text or a window around each token.
#include "model/modernbert.h"

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class ModernBert : public EncoderFamily {
 public:
  ModernBert(ModelFacts facts, EncoderConfig block, ModernBertBiases biases)
      : EncoderFamily(std::move(facts), std::move(block)), biases_(biases) {}
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  TiedWords word_names() const;
  void add_layer_rows(int64_t layer, WeightTable& table) const;
  void add_head_rows(WeightTable& table) const;
  WeightRow linear(std::string name, const std::string& module, Shape shape, bool bias) const;
  WeightRow norm(std::string name, const std::string& module) const;

  ModernBertBiases biases_;
  std::string prefix_;  // of this file
};

WeightRow ModernBert::linear(std::string name, const std::string& module, Shape shape,
                             bool bias) const {
  WeightRow row = linear_row(std::move(name), {module}, shape[0], shape[1]);
  if (!bias) row.biases.clear();
  return row;
}

WeightRow ModernBert::norm(std::string name, const std::string& module) const {
  const int64_t d = facts().width;
  return biases_.norm ? norm_row(std::move(name), module, d) : gain_row(std::move(name), module, d);
}

TiedWords ModernBert::word_names() const {
  TiedWords words{.words = prefix_ + "embeddings.tok_embeddings.weight"};
  if (facts().head != HeadKind::kMasked) return words;
  words.decoder = "decoder";
  if (biases_.decoder) words.biases = {"decoder.bias"};
  return words;
}

Status ModernBert::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "embeddings.tok_embeddings.weight");
  if (facts().head == HeadKind::kMasked) {
    block().heads.back().output = decoder_row(checkpoint, word_names());
  }
  return {};
}

void ModernBert::add_layer_rows(int64_t layer, WeightTable& table) const {
  const int64_t d = facts().width;
  const int64_t ffn = block().stack.ffn;
  const std::string to = block().stack.rows + "." + std::to_string(layer);
  const std::string from = prefix_ + "layers." + std::to_string(layer) + ".";
  const bool attention = biases_.attention;
  if (layer > 0) table.rows.push_back(norm(to + ".self.norm", from + "attn_norm"));
  table.rows.push_back(linear(to + ".self.qkv", from + "attn.Wqkv", {3 * d, d}, attention));
  table.rows.push_back(linear(to + ".self.out", from + "attn.Wo", {d, d}, attention));
  table.rows.push_back(norm(to + ".ffn.norm", from + "mlp_norm"));
  const bool biased = biases_.feed_forward;
  table.rows.push_back(
      in_gate_pairs(linear(to + ".ffn.up", from + "mlp.Wi", {2 * ffn, d}, biased)));
  table.rows.push_back(linear(to + ".ffn.down", from + "mlp.Wo", {d, ffn}, biased));
}

void ModernBert::add_head_rows(WeightTable& table) const {
  const ModelFacts& f = facts();
  if (f.head == HeadKind::kNone) return;
  table.rows.push_back(linear("head.dense", "head.dense", {f.width, f.width}, biases_.dense));
  table.rows.push_back(norm("head.norm", "head.norm"));
  const auto classes = static_cast<int64_t>(f.labels.size());
  if (classes > 0) table.rows.push_back(linear_row("classifier", {"classifier"}, classes, f.width));
}

Result<WeightTable> ModernBert::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const ModelFacts& f = facts();
  add_word_rows(checkpoint, word_names(), f.source_vocab, f.width, table);
  table.rows.push_back(norm("embedding.norm", prefix_ + "embeddings.norm"));
  for (int64_t i = 0; i < f.encoder_layers; ++i) add_layer_rows(i, table);
  table.rows.push_back(norm(block().stack.rows + ".norm", prefix_ + "final_norm"));
  add_head_rows(table);
  if (f.head == HeadKind::kSpans) {
    for (WeightRow& row : span_rows("classifier", f.width)) table.rows.push_back(std::move(row));
  }
  table.ignored = {"head.*", "classifier.*", "decoder.*"};
  return table;
}

Status read_encoder_windows(const JsonConfig& config, StackConfig& stack) {
  VKF_CHECK(read_modernbert_layer_types(config, stack));
  VKF_ASSIGN(int64_t window, config.get_int_or("local_attention", 128));
  if (window < 0 || window > 2 * kMostPositions) {
    return invalid_file(message({"[local_attention] in ", config.where(), " is ", window,
                                 ", but must lie between 0 and ", 2 * kMostPositions}));
  }
  stack.kinds = {
      {.rotary = kModernBertFull},
      {.window_left = window / 2, .window_right = window / 2, .rotary = kModernBertSliding}};
  return {};
}

Status read_facts(const ModelFiles& files, const StackConfig& stack, ModelFacts& facts) {
  const JsonConfig& config = files.config;
  facts.family = "modernbert";
  facts.kind = ModelKind::kEncoder;
  facts.sentence = files.sentence;
  facts.width = stack.width;
  facts.encoder_layers = stack.layers;
  facts.encoder_heads = stack.heads;
  VKF_ASSIGN(facts.source_vocab, get_size_or(config, "vocab_size", 50368, kMostVocabulary));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 8192, kMostPositions));
  VKF_ASSIGN(facts.architecture, get_architecture(config, "ModernBertModel"));
  VKF_ASSIGN(facts.head, read_encoder_head(config, facts.architecture));
  if (facts.head == HeadKind::kMasked) facts.target_vocab = facts.source_vocab;
  if (facts.head == HeadKind::kSequence || facts.head == HeadKind::kTokens) {
    VKF_ASSIGN(facts.labels, get_labels(config));
  }
  return {};
}

Result<HeadConfig::Input> read_pooling(const JsonConfig& config) {
  VKF_ASSIGN(std::string pooling, config.get_string_or("classifier_pooling", "cls"));
  if (pooling == "cls") return HeadConfig::Input::kToken;
  if (pooling == "mean") return HeadConfig::Input::kMaskedMean;
  return unsupported(message({"[classifier_pooling] in ", config.where(), " is '", pooling,
                              "'; supported are cls and mean"}));
}

// Every head is dense, activation, norm, output.
Status add_modernbert_heads(const JsonConfig& config, HeadKind kind, EncoderConfig& block) {
  HeadConfig head{.dense = "head.dense", .norm = "head.norm", .output = "classifier"};
  VKF_ASSIGN(head.activation, get_activation(config, "classifier_activation", "gelu"));
  switch (kind) {
    case HeadKind::kNone:
      return {};
    case HeadKind::kSpans:
      for (HeadConfig& span : span_heads(head)) block.heads.push_back(std::move(span));
      return {};
    case HeadKind::kSequence: {
      VKF_ASSIGN(head.input, read_pooling(config));
      break;
    }
    default:
      break;
  }
  block.heads.push_back(std::move(head));
  return {};
}

}  // namespace

Result<ModernBertBiases> read_modernbert_biases(const JsonConfig& config) {
  ModernBertBiases biases;
  VKF_ASSIGN(biases.attention, config.get_bool_or("attention_bias", false));
  VKF_ASSIGN(biases.feed_forward, config.get_bool_or("mlp_bias", false));
  VKF_ASSIGN(biases.norm, config.get_bool_or("norm_bias", false));
  VKF_ASSIGN(biases.decoder, config.get_bool_or("decoder_bias", true));
  VKF_ASSIGN(biases.dense, config.get_bool_or("classifier_bias", false));
  return biases;
}

Status read_modernbert_sizes(const JsonConfig& config, StackConfig& stack) {
  stack.order = StackConfig::Order::kPre;
  stack.before_norm = StackConfig::BeforeNorm::kNotFirst;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.gate = StackConfig::Gate::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 22, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 1152, kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_activation", "gelu"));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "norm_eps", 1e-5));
  VKF_ASSIGN(int64_t head, head_width(config, stack.width, stack.heads));
  if (head % 2 != 0) {
    return invalid_file(message({"[num_attention_heads] in ", config.where(), " makes heads ", head,
                                 " wide; rotary positions turn an even number"}));
  }
  return {};
}

Status read_modernbert_layer_types(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(int64_t every, get_size_or(config, "global_attn_every_n_layers", 3, kMostLayers));
  VKF_ASSIGN(std::vector<std::string> types, config.get_string_list_or("layer_types", {}));
  for (int64_t i = 0; i < stack.layers && !config.has("layer_types"); ++i) {
    types.emplace_back(i % every == 0 ? "full_attention" : "sliding_attention");
  }
  if (static_cast<int64_t>(types.size()) != stack.layers) {
    return invalid_file(message({"[layer_types] in ", config.where(), " lists ", types.size(),
                                 " layers, but num_hidden_layers is ", stack.layers}));
  }
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return unsupported(message({"[layer_types] in ", config.where(), " names '", type,
                                  "'; supported are full_attention and sliding_attention"}));
    }
    stack.kind_of.push_back(type == "full_attention" ? kModernBertFull : kModernBertSliding);
  }
  return {};
}

Status read_modernbert_rotaries(const JsonConfig& config, int64_t positions, StackConfig& stack) {
  const JsonConfig scope = rotary_scope(config);
  VKF_CHECK(scope.status());
  const auto width = static_cast<uint32_t>(stack.head());
  constexpr struct {
    const char* type;
    const char* theta_key;
    double theta;
  } kKinds[] = {{"full_attention", "global_rope_theta", 160000.0},
                {"sliding_attention", "local_rope_theta", 10000.0}};
  for (const auto& [type, theta_key, theta] : kKinds) {
    RotaryDefaults defaults{.max_positions = positions};
    VKF_ASSIGN(defaults.theta, config.get_double_or(theta_key, theta));
    const bool by_type = scope.has("full_attention") || scope.has("sliding_attention");
    VKF_ASSIGN(RotaryScaling scaling, read_rotary(by_type ? scope.object(type) : scope, defaults));
    VKF_CHECK(check_rotary_scaling(scaling, width, config.where()));
    stack.rotaries.push_back({.width = width, .scaling = std::move(scaling)});
  }
  return {};
}

Result<std::unique_ptr<ModelFamily>> load_modernbert(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  EncoderConfig block;
  ModelFacts facts;
  block.stack.rows = "encoder";
  VKF_CHECK(read_modernbert_sizes(config, block.stack));
  VKF_CHECK(read_encoder_windows(config, block.stack));
  VKF_CHECK(read_facts(files, block.stack, facts));
  VKF_CHECK(read_modernbert_rotaries(config, facts.max_source, block.stack));
  block.embedding = {.words = "words", .norm = "embedding.norm"};
  VKF_CHECK(add_modernbert_heads(config, facts.head, block));
  VKF_ASSIGN(ModernBertBiases biases, read_modernbert_biases(config));
  return std::unique_ptr<ModelFamily>(
      std::make_unique<ModernBert>(std::move(facts), std::move(block), biases));
}

}  // namespace vkformer
