#include "model/marian.h"

#include <cmath>

#include "model/blocks/encoder_decoder.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/sinusoidal_positions.h"

namespace vkformer {
namespace {

class Marian : public EncoderDecoderFamily {
 public:
  using EncoderDecoderFamily::EncoderDecoderFamily;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  void add_embeddings(const Checkpoint& checkpoint, WeightTable& table) const;
};

// The rows of one layer; `to` is our prefix ("encoder.0"), `from` the file's.
void add_layer(WeightTable& table, const std::string& to, const std::string& from, int64_t d,
               int64_t f) {
  const std::string attn = from + ".self_attn.";
  table.rows.push_back(
      linear_row(to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {attn + "out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".self.norm", from + ".self_attn_layer_norm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {from + ".fc1"}, f, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {from + ".fc2"}, d, f));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + ".final_layer_norm", d));
}

void add_cross(WeightTable& table, const std::string& to, const std::string& from, int64_t d) {
  const std::string attn = from + ".encoder_attn.";
  table.rows.push_back(linear_row(to + ".cross.q", {attn + "q_proj"}, d, d));
  table.rows.push_back(linear_row(to + ".cross.kv", {attn + "k_proj", attn + "v_proj"}, 2 * d, d));
  table.rows.push_back(linear_row(to + ".cross.out", {attn + "out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".cross.norm", from + ".encoder_attn_layer_norm", d));
}

// The first of the names that the file has; the last one if it has none, for the error message.
std::string first_present(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (checkpoint.find(name) != nullptr) return name;
  }
  return names.back();
}

void Marian::add_embeddings(const Checkpoint& checkpoint, WeightTable& table) const {
  const std::string source =
      first_present(checkpoint, {"model.encoder.embed_tokens.weight", "model.shared.weight"});
  const std::string target =
      first_present(checkpoint, {"model.decoder.embed_tokens.weight", "model.shared.weight"});
  const std::string head = first_present(checkpoint, {"lm_head.weight", target});
  WeightRow head_row = embedding_row("head", head, facts().target_vocab, facts().width);
  if (checkpoint.find("final_logits_bias") != nullptr) head_row.biases = {"final_logits_bias"};
  table.rows.push_back(std::move(head_row));
  if (block().decoder.embedding != "head") {
    table.rows.push_back(
        embedding_row("decoder.embed", target, facts().target_vocab, facts().width));
  }
  if (block().encoder.embedding != "head") {
    table.rows.push_back(
        embedding_row("encoder.embed", source, facts().source_vocab, facts().width));
  }
}

Result<WeightTable> Marian::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  add_embeddings(checkpoint, table);
  const int64_t d = facts().width;
  for (int64_t i = 0; i < facts().encoder_layers; ++i) {
    const std::string n = std::to_string(i);
    add_layer(table, "encoder." + n, "model.encoder.layers." + n, d, block().encoder.ffn);
  }
  for (int64_t i = 0; i < facts().decoder_layers; ++i) {
    const std::string n = std::to_string(i);
    add_layer(table, "decoder." + n, "model.decoder.layers." + n, d, block().decoder.ffn);
    add_cross(table, "decoder." + n, "model.decoder.layers." + n, d);
  }
  VKF_ASSIGN(std::vector<float> positions,
             sinusoidal_positions({.length = facts().max_source,
                                   .width = d,
                                   .layout = SinusoidalLayout::kHalves,
                                   .spacing = SinusoidalSpacing::kTransformer}));
  table.rows.push_back({.name = "positions",
                        .layout = WeightLayout::kTable,
                        .rows = facts().max_source,
                        .width = d,
                        .computed = std::move(positions)});
  // Tied copies and the position tables that older versions of the library saved.
  table.ignored = {"model.encoder.embed_positions.weight",
                   "model.decoder.embed_positions.weight",
                   "model.encoder.embed_tokens.weight",
                   "model.decoder.embed_tokens.weight",
                   "model.shared.weight",
                   "lm_head.weight"};
  return table;
}

Status refuse_variants(const JsonConfig& config) {
  for (const char* key : {"normalize_before", "normalize_embedding", "add_final_layer_norm"}) {
    VKF_ASSIGN(bool set, config.get_bool_or(key, false));
    if (set) {
      return unsupported("[" + std::string(key) + "] is true in " + config.where() +
                         "; this Marian variant is not supported");
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_marian(const JsonConfig& config,
                                                 const JsonConfig& generation) {
  VKF_CHECK(refuse_variants(config));
  ModelFacts facts{.family = "marian", .architecture = "MarianMTModel"};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.width, get_size(config, "d_model", kMostWidth));
  VKF_ASSIGN(facts.encoder_layers, get_size_or(config, "encoder_layers", 12, kMostLayers));
  VKF_ASSIGN(facts.decoder_layers, get_size_or(config, "decoder_layers", 12, kMostLayers));
  VKF_ASSIGN(facts.encoder_heads, get_size_or(config, "encoder_attention_heads", 16, kMostWidth));
  VKF_ASSIGN(facts.decoder_heads, get_size_or(config, "decoder_attention_heads", 16, kMostWidth));
  VKF_ASSIGN(facts.source_vocab, get_size(config, "vocab_size", kMostVocabulary));
  VKF_ASSIGN(facts.target_vocab,
             get_size_or(config, "decoder_vocab_size", facts.source_vocab, kMostVocabulary));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1024, kMostPositions));
  facts.max_target = facts.max_source;
  VKF_CHECK(head_width(config, facts.width, facts.encoder_heads));
  VKF_CHECK(head_width(config, facts.width, facts.decoder_heads));
  block.width = facts.width;
  VKF_ASSIGN(bool shared, config.get_bool_or("share_encoder_decoder_embeddings", true));
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  VKF_ASSIGN(bool scaled, config.get_bool_or("scale_embedding", false));
  const float scale = scaled ? std::sqrt(static_cast<float>(facts.width)) : 1.0f;
  block.encoder = {.layers = facts.encoder_layers,
                   .heads = facts.encoder_heads,
                   .embedding = shared && tied ? "head" : "encoder.embed",
                   .embedding_scale = scale};
  block.decoder = {.layers = facts.decoder_layers,
                   .heads = facts.decoder_heads,
                   .embedding = tied ? "head" : "decoder.embed",
                   .embedding_scale = scale};
  VKF_ASSIGN(block.encoder.ffn, get_size_or(config, "encoder_ffn_dim", 4096, kMostWidth));
  VKF_ASSIGN(block.decoder.ffn, get_size_or(config, "decoder_ffn_dim", 4096, kMostWidth));
  VKF_ASSIGN(block.activation, get_activation(config, "activation_function", "gelu"));
  block.head = "head";
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, generation));
  return std::unique_ptr<ModelFamily>(
      new Marian(std::move(facts), std::move(tokens), std::move(block)));
}

}  // namespace vkformer
