#include "model/blocks/bart_layers.h"

#include <algorithm>
#include <cmath>

#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/sinusoidal_positions.h"

namespace vkformer {
namespace {

void add_self(WeightTable& table, const StackConfig& stack, const std::string& to,
              const std::string& from, KeyBias key_bias) {
  const int64_t d = stack.width;
  const std::string attn = from + ".self_attn.";
  WeightRow qkv =
      linear_row(to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d);
  if (key_bias == KeyBias::kNo) qkv.biases[1].clear();
  table.rows.push_back(std::move(qkv));
  table.rows.push_back(linear_row(to + ".self.out", {attn + "out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".self.norm", from + ".self_attn_layer_norm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {from + ".fc1"}, stack.ffn, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {from + ".fc2"}, d, stack.ffn));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + ".final_layer_norm", d));
}

void add_cross(WeightTable& table, const StackConfig& stack, const std::string& to,
               const std::string& from, KeyBias key_bias) {
  const int64_t d = stack.width;
  const int64_t memory = stack.memory_width > 0 ? stack.memory_width : d;
  const std::string attn = from + ".encoder_attn.";
  table.rows.push_back(linear_row(to + ".cross.q", {attn + "q_proj"}, d, d));
  WeightRow kv = linear_row(to + ".cross.kv", {attn + "k_proj", attn + "v_proj"}, 2 * d, memory);
  if (key_bias == KeyBias::kNo) kv.biases[0].clear();
  table.rows.push_back(std::move(kv));
  table.rows.push_back(linear_row(to + ".cross.out", {attn + "out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".cross.norm", from + ".encoder_attn_layer_norm", d));
}

// The default 0 stands for none.
Result<int64_t> size_or_needed(const JsonConfig& config, const std::string& key, int64_t fallback,
                               int64_t most) {
  if (fallback == 0) return get_size(config, key, most);
  return get_size_or(config, key, fallback, most);
}

}  // namespace

void add_bart_layers(WeightTable& table, const StackConfig& stack, const std::string& from,
                     KeyBias key_bias) {
  for (int64_t i = 0; i < stack.layers; ++i) {
    const std::string to = stack.rows + "." + std::to_string(i);
    const std::string source = from + "." + std::to_string(i);
    add_self(table, stack, to, source, key_bias);
    if (stack.cross == StackConfig::Cross::kYes) {
      add_cross(table, stack, to, source, key_bias);
    }
  }
}

void set_bart_embedding(const BartSurroundings& around, const StackConfig& stack,
                        TextEmbedding& embedding) {
  embedding.positions = stack.rows + ".positions";
  embedding.position_offset = around.position_offset;
  if (around.embedding_norm == BartSurroundings::EmbeddingNorm::kYes) {
    embedding.norm = stack.rows + ".embed_norm";
  }
}

Status add_bart_stack(const Checkpoint& checkpoint, const StackConfig& stack,
                      const BartSurroundings& around, const std::string& from, int64_t positions,
                      WeightTable& table) {
  using Positions = BartSurroundings::Positions;
  const int64_t d = stack.width;
  add_bart_layers(table, stack, from + ".layers");
  if (around.embedding_norm == BartSurroundings::EmbeddingNorm::kYes) {
    table.rows.push_back(norm_row(stack.rows + ".embed_norm", from + ".layernorm_embedding", d));
  }
  const std::string name = stack.rows + ".positions";
  const std::string stored = from + ".embed_positions.weight";
  const int64_t rows = positions + around.position_offset;
  // Only some versions of the library save sinusoids.
  const bool has = checkpoint.find(stored) != nullptr;
  if (around.positions == Positions::kFairseq) {
    VKF_ASSIGN(WeightRow row, fairseq_positions(name, rows, d, around.position_offset - 1));
    table.rows.push_back(std::move(row));
    table.ignored.push_back(from + ".embed_positions.*");
  } else if (around.positions == Positions::kSinusoidal && !has) {
    VKF_ASSIGN(WeightRow row, sinusoidal_row(name, rows, d));
    table.rows.push_back(std::move(row));
  } else {
    table.rows.push_back(table_row(name, {stored}, {rows}, d));
  }
  if (stack.final_norm == StackConfig::FinalNorm::kYes) {
    table.rows.push_back(norm_row(stack.rows + ".norm", from + ".layer_norm", d));
  }
  return {};
}

Result<WeightRow> sinusoidal_row(const std::string& name, int64_t rows, int64_t width) {
  VKF_ASSIGN(std::vector<float> values,
             sinusoidal_positions({.length = rows,
                                   .width = width,
                                   .layout = SinusoidalLayout::kHalves,
                                   .spacing = SinusoidalSpacing::kTransformer}));
  return computed_row(name, std::move(values), rows, width);
}

Result<WeightRow> fairseq_positions(const std::string& name, int64_t rows, int64_t width,
                                    int64_t pad) {
  VKF_ASSIGN(std::vector<float> values,
             sinusoidal_positions({.length = rows,
                                   .width = width,
                                   .layout = SinusoidalLayout::kHalves,
                                   .spacing = SinusoidalSpacing::kHalfMinusOne}));
  if (pad >= 0 && pad < rows) std::fill_n(values.begin() + pad * width, width, 0.0f);
  return computed_row(name, std::move(values), rows, width);
}

Status read_bart_stack(const JsonConfig& config, const BartDefaults& defaults,
                       const std::string& which, StackConfig& stack) {
  const int64_t layers = which == "encoder" ? defaults.encoder_layers : defaults.decoder_layers;
  stack.rows = which;
  stack.taps = which + "_";
  VKF_ASSIGN(stack.layers, get_size_or(config, which + "_layers", layers, kMostLayers));
  VKF_ASSIGN(stack.heads,
             get_size_or(config, which + "_attention_heads", defaults.heads, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, which + "_ffn_dim", defaults.ffn, kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", defaults.activation));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  return {};
}

Status read_bart_sizes(const JsonConfig& config, const BartDefaults& defaults, ModelFacts& facts,
                       EncoderDecoderConfig& block) {
  VKF_ASSIGN(facts.width, size_or_needed(config, "d_model", defaults.width, kMostWidth));
  block.encoder.width = block.decoder.width = facts.width;
  VKF_CHECK(read_bart_stack(config, defaults, "encoder", block.encoder));
  VKF_CHECK(read_bart_stack(config, defaults, "decoder", block.decoder));
  block.decoder.causal = StackConfig::Causal::kYes;
  block.decoder.cross = StackConfig::Cross::kYes;
  facts.encoder_layers = block.encoder.layers;
  facts.decoder_layers = block.decoder.layers;
  facts.encoder_heads = block.encoder.heads;
  facts.decoder_heads = block.decoder.heads;
  VKF_ASSIGN(facts.source_vocab,
             size_or_needed(config, "vocab_size", defaults.vocab, kMostVocabulary));
  facts.target_vocab = facts.source_vocab;
  VKF_ASSIGN(bool scaled,
             config.get_bool_or("scale_embedding", defaults.scaled == BartDefaults::Scaled::kYes));
  block.source.scale = scaled ? std::sqrt(static_cast<float>(facts.width)) : 1.0f;
  block.target.scale = block.source.scale;
  return {};
}

BartEmbeddings find_bart_embeddings(const Checkpoint& checkpoint, const std::string& prefix,
                                    EncoderDecoderConfig& block) {
  const std::string shared = prefix + "shared.weight";
  BartEmbeddings names;
  names.source = first_present(checkpoint, {prefix + "encoder.embed_tokens.weight", shared});
  names.target = first_present(checkpoint, {prefix + "decoder.embed_tokens.weight", shared});
  names.head = first_present(checkpoint, {"lm_head.weight", "proj_out.weight", names.target});
  if (block.head.empty()) names.head = names.target;
  block.target.words = names.target == names.head ? "head" : "decoder.embed";
  block.source.words = names.source == names.target ? block.target.words : "encoder.embed";
  if (names.source == names.head) block.source.words = "head";
  return names;
}

void add_bart_embeddings(const Checkpoint& checkpoint, const BartEmbeddings& names,
                         const ModelFacts& facts, const EncoderDecoderConfig& block,
                         WeightTable& table) {
  WeightRow head = embedding_row("head", names.head, facts.target_vocab, facts.width);
  if (!block.head.empty() && checkpoint.find("final_logits_bias") != nullptr) {
    head.biases = {"final_logits_bias"};
  }
  table.rows.push_back(std::move(head));
  if (block.target.words != "head") {
    table.rows.push_back(
        embedding_row("decoder.embed", names.target, facts.target_vocab, facts.width));
  }
  if (block.source.words == "encoder.embed") {
    table.rows.push_back(
        embedding_row("encoder.embed", names.source, facts.source_vocab, facts.width));
  }
}

void ignore_bart_copies(const std::string& prefix, WeightTable& table) {
  for (const char* name :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "shared.weight"}) {
    table.ignored.push_back(prefix + name);
  }
  table.ignored.push_back("lm_head.weight");
  table.ignored.push_back("final_logits_bias");
}

}  // namespace vkformer
