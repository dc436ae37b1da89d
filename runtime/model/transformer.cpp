// The Transformer of "Attention is all you need" (Vaswani et al., 2017) as PyTorch's nn.Transformer
// lays it out. It is post- or pre-norm, ReLU or GELU, embeddings separate or shared.
#include <cmath>

#include "base/message.h"
#include "model/blocks/encoder_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/sinusoidal_positions.h"

namespace vkformer {
namespace {

// Which embeddings are one and the same tensor.
struct WeightSharing {
  bool source_target = false;  // share_embeddings
  bool target_head = false;    // tie_output
};

class Transformer : public EncoderDecoderFamily {
 public:
  Transformer(ModelFacts facts, GenerationFacts generation, EncoderDecoderConfig block,
              WeightSharing sharing)
      : EncoderDecoderFamily(std::move(facts), std::move(generation), std::move(block)),
        sharing_(sharing) {}
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;

 private:
  WeightSharing sharing_;
};

// Rows [first, first + n) of a merged in_proj matrix and its bias.
WeightRow in_proj_row(std::string name, const std::string& attention, int64_t first, int64_t n,
                      int64_t d) {
  return {.name = std::move(name),
          .sources = {attention + ".in_proj_weight"},
          .biases = {attention + ".in_proj_bias"},
          .rows = n,
          .width = d,
          .first_row = first,
          .source_rows = {3 * d}};
}

void add_layer(WeightTable& table, const std::string& to, const std::string& from, int64_t d,
               int64_t f) {
  table.rows.push_back(in_proj_row(to + ".self.qkv", from + ".self_attn", 0, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {from + ".self_attn.out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".self.norm", from + ".norm1", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {from + ".linear1"}, f, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {from + ".linear2"}, d, f));
}

void add_cross(WeightTable& table, const std::string& to, const std::string& from, int64_t d) {
  const std::string attention = from + ".multihead_attn";
  table.rows.push_back(in_proj_row(to + ".cross.q", attention, 0, d, d));
  table.rows.push_back(in_proj_row(to + ".cross.kv", attention, d, 2 * d, d));
  table.rows.push_back(linear_row(to + ".cross.out", {attention + ".out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".cross.norm", from + ".norm2", d));
}

Result<WeightTable> Transformer::weight_table(const Checkpoint&) const {
  WeightTable table;
  const ModelFacts& f = facts();
  const std::string target = sharing_.source_target ? "src_embed.weight" : "tgt_embed.weight";
  WeightRow head = embedding_row("head", sharing_.target_head ? target : "generator.weight",
                                 f.target_vocab, f.width);
  head.biases = {"generator.bias"};
  table.rows.push_back(std::move(head));
  if (block().target.words == "decoder.embed") {
    table.rows.push_back(embedding_row("decoder.embed", target, f.target_vocab, f.width));
  }
  if (block().source.words == "encoder.embed") {
    table.rows.push_back(
        embedding_row("encoder.embed", "src_embed.weight", f.source_vocab, f.width));
  }
  for (int64_t i = 0; i < f.encoder_layers; ++i) {
    const std::string to = "encoder." + std::to_string(i);
    const std::string from = "transformer.encoder.layers." + std::to_string(i);
    add_layer(table, to, from, f.width, block().encoder.ffn);
    table.rows.push_back(norm_row(to + ".ffn.norm", from + ".norm2", f.width));
  }
  for (int64_t i = 0; i < f.decoder_layers; ++i) {
    const std::string to = "decoder." + std::to_string(i);
    const std::string from = "transformer.decoder.layers." + std::to_string(i);
    add_layer(table, to, from, f.width, block().decoder.ffn);
    add_cross(table, to, from, f.width);
    table.rows.push_back(norm_row(to + ".ffn.norm", from + ".norm3", f.width));
  }
  if (block().encoder.final_norm == StackConfig::FinalNorm::kYes) {
    table.rows.push_back(norm_row("encoder.norm", "transformer.encoder.norm", f.width));
    table.rows.push_back(norm_row("decoder.norm", "transformer.decoder.norm", f.width));
  }
  VKF_ASSIGN(std::vector<float> positions,
             sinusoidal_positions({.length = f.max_source,
                                   .width = f.width,
                                   .layout = SinusoidalLayout::kInterleaved,
                                   .spacing = SinusoidalSpacing::kTransformer}));
  table.rows.push_back(computed_row("positions", std::move(positions), f.max_source, f.width));
  return table;
}

Result<ModelFacts> read_facts(const JsonConfig& config) {
  ModelFacts facts{
      .family = "transformer", .architecture = "Transformer2017", .head = HeadKind::kLanguage};
  VKF_ASSIGN(facts.width, get_size(config, "d_model", kMostWidth));
  VKF_ASSIGN(facts.encoder_layers, get_size(config, "num_encoder_layers", kMostLayers));
  VKF_ASSIGN(facts.decoder_layers, get_size(config, "num_decoder_layers", kMostLayers));
  VKF_ASSIGN(facts.encoder_heads, get_size(config, "nhead", kMostWidth));
  facts.decoder_heads = facts.encoder_heads;
  VKF_ASSIGN(facts.source_vocab, get_size(config, "src_vocab_size", kMostVocabulary));
  VKF_ASSIGN(facts.target_vocab, get_size(config, "tgt_vocab_size", kMostVocabulary));
  VKF_ASSIGN(facts.max_source,
             get_size_or(config, "max_position_embeddings", 1024, kMostPositions));
  facts.max_target = facts.max_source;
  VKF_CHECK(head_width(config, facts.width, facts.encoder_heads));
  return facts;
}

// The switches of one stack; `which` is "encoder" or "decoder".
Result<StackConfig> read_stack(const JsonConfig& config, const ModelFacts& facts,
                               const std::string& which) {
  StackConfig stack{.rows = which, .taps = which + "_"};
  stack.width = facts.width;
  stack.heads = facts.encoder_heads;
  stack.layers = which == "encoder" ? facts.encoder_layers : facts.decoder_layers;
  VKF_ASSIGN(stack.ffn, get_size(config, "dim_feedforward", kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation", "relu"));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(bool pre_norm, config.get_bool_or("norm_first", false));
  VKF_ASSIGN(bool final_norm, config.get_bool_or("final_norm", true));
  if (pre_norm) stack.order = StackConfig::Order::kPre;
  if (final_norm) stack.final_norm = StackConfig::FinalNorm::kYes;
  return stack;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_transformer(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(ModelFacts facts, read_facts(config));
  VKF_ASSIGN(std::string encoding, config.get_string_or("position_encoding", "sinusoidal"));
  if (encoding != "sinusoidal") {
    return unsupported(message({"[position_encoding] in ", config.where(), " is '", encoding,
                                "'; the transformer family supports sinusoidal"}));
  }
  EncoderDecoderConfig block{.head = "head"};
  WeightSharing sharing;
  VKF_ASSIGN(sharing.source_target, config.get_bool_or("share_embeddings", false));
  VKF_ASSIGN(sharing.target_head, config.get_bool_or("tie_output", false));
  VKF_ASSIGN(bool scaled, config.get_bool_or("scale_embedding", true));
  VKF_ASSIGN(block.encoder, read_stack(config, facts, "encoder"));
  VKF_ASSIGN(block.decoder, read_stack(config, facts, "decoder"));
  block.decoder.causal = StackConfig::Causal::kYes;
  block.decoder.cross = StackConfig::Cross::kYes;
  block.target = {.words = sharing.target_head ? "head" : "decoder.embed",
                  .scale = scaled ? std::sqrt(static_cast<float>(facts.width)) : 1.0f,
                  .positions = "positions"};
  block.source = block.target;
  if (!sharing.source_target) block.source.words = "encoder.embed";
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  if (!config.has("decoder_start_token_id") && !files.generation.has("decoder_start_token_id")) {
    VKF_ASSIGN(tokens.decoder_start, config.get_int_or("bos_token_id", tokens.pad));
  }
  return std::unique_ptr<ModelFamily>(
      new Transformer(std::move(facts), std::move(tokens), std::move(block), sharing));
}

}  // namespace vkformer
