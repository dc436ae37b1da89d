// BLOOM (Le Scao et al., 2022): slopes for positions (ALiBi), a norm after the embedding.
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/relative_positions.h"

namespace vkformer {
namespace {

// Slopes reach any distance, and the configuration states no limit (seq_length is how long the
// texts of its training were), so this one is ours.
constexpr int64_t kMostBloomTokens = int64_t{1} << 17;

class Bloom : public NamedDecoder {
 public:
  using NamedDecoder::NamedDecoder;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;
};

void Bloom::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  table.rows.push_back(norm_row("embed.norm", prefix + "word_embeddings_layernorm", d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "h." + std::to_string(i) + ".";
    WeightRow qkv =
        linear_row(to + ".self.qkv", {from + "self_attention.query_key_value"}, 3 * d, d);
    qkv.row_order = grouped_qkv_order(s.heads, s.heads, s.head());
    table.rows.push_back(norm_row(to + ".self.norm", from + "input_layernorm", d));
    table.rows.push_back(std::move(qkv));
    table.rows.push_back(linear_row(to + ".self.out", {from + "self_attention.dense"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "post_attention_layernorm", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {from + "mlp.dense_h_to_4h"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.dense_4h_to_h"}, d, s.ffn));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "ln_f", d));
}

Status read_bloom_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  stack.activation = ActivationKind::kGeluTanh;
  // n_embed is an old name, which wins.
  VKF_ASSIGN(stack.width, size_by_either(config, "n_embed", "hidden_size", 64, kMostWidth));
  VKF_ASSIGN(stack.layers, size_by_either(config, "n_layer", "num_hidden_layers", 2, kMostLayers));
  VKF_ASSIGN(stack.heads, size_by_either(config, "n_head", "num_attention_heads", 8, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  stack.ffn = 4 * stack.width;
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  VKF_ASSIGN(bool normed, config.get_bool_or("apply_residual_connection_post_layernorm", false));
  if (normed) stack.residual = StackConfig::Residual::kNormed;
  for (double slope : alibi_slopes(stack.heads)) stack.slopes.push_back(static_cast<float>(slope));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_bloom(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "bloom", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "BloomForCausalLM", facts, block));
  VKF_CHECK(read_bloom_stack(config, block.stack));
  block.embedding.norm = "embed.norm";
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 250880, kMostVocabulary));
  set_decoder_facts(block, vocabulary, kMostBloomTokens, facts);
  DecoderNames names{
      .prefix = "transformer.", .words = "word_embeddings.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Bloom(std::move(facts), std::move(tokens), std::move(block), std::move(names)));
}

}  // namespace vkformer
