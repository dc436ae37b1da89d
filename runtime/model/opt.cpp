// OPT (Zhang et al., "OPT: Open Pre-trained Transformer Language Models", 2022). It has GPT-3's
// shape with ReLU, learned positions after two unused rows, counted by the attention mask.
#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// Rows of the table of positions before position 0, as fairseq reserved them.
constexpr int64_t kOptPositionOffset = 2;

enum class Bias : uint8_t { kNo, kYes };  // of the projections

class Opt : public NamedDecoder {
 public:
  Opt(ModelFacts facts, GenerationFacts tokens, DecoderConfig block, DecoderNames names, Bias bias)
      : NamedDecoder(std::move(facts), std::move(tokens), std::move(block), std::move(names)),
        bias_(bias) {}

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  Bias bias_;
};

void Opt::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  const auto linear = bias_ == Bias::kYes ? linear_row : plain_linear_row;
  const std::string base = prefix + "decoder.";
  table.rows.push_back(table_row("positions", {base + "embed_positions.weight"},
                                 {facts().max_source + kOptPositionOffset}, d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = base + "layers." + std::to_string(i) + ".";
    const std::string attn = from + "self_attn.";
    table.rows.push_back(norm_row(to + ".self.norm", from + "self_attn_layer_norm", d));
    table.rows.push_back(
        linear(to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d));
    table.rows.push_back(linear(to + ".self.out", {attn + "out_proj"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "final_layer_norm", d));
    table.rows.push_back(linear(to + ".ffn.up", {from + "fc1"}, s.ffn, d));
    table.rows.push_back(linear(to + ".ffn.down", {from + "fc2"}, d, s.ffn));
  }
  if (s.final_norm == StackConfig::FinalNorm::kYes) {
    table.rows.push_back(norm_row(s.rows + ".norm", base + "final_layer_norm", d));
  }
  if (block().projection.empty()) return;
  // OPT-350m: embeddings narrower than the layers.
  const int64_t e = facts().width;
  table.rows.push_back(plain_linear_row(block().embedding.projection, {base + "project_in"}, d, e));
  table.rows.push_back(plain_linear_row(block().projection, {base + "project_out"}, e, d));
  const std::vector<float> zeros(static_cast<size_t>(d), 0.0f);
  table.rows.push_back(computed_row(block().embedding.zeros, zeros, 1, d));
}

// What changes the mathematics and is not done here.
Status refuse_opt_variants(const JsonConfig& config) {
  VKF_ASSIGN(bool affine, config.get_bool_or("layer_norm_elementwise_affine", true));
  if (affine) return {};
  return unsupported(message({"[layer_norm_elementwise_affine] is false in ", config.where(),
                              "; norms without gain and bias are not supported"}));
}

Status read_opt_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "ffn_dim", 3072, 4 * kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", "relu"));
  VKF_ASSIGN(bool before, config.get_bool_or("do_layer_norm_before", true));
  VKF_ASSIGN(bool removed, config.get_bool_or("_remove_final_layer_norm", false));
  stack.order = before ? StackConfig::Order::kPre : StackConfig::Order::kPost;
  if (before && !removed) stack.final_norm = StackConfig::FinalNorm::kYes;
  return refuse_opt_variants(config);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_opt(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "opt", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "OPTForCausalLM", facts, block));
  VKF_CHECK(read_opt_stack(config, block.stack));
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 50272, kMostVocabulary));
  VKF_ASSIGN(int64_t positions,
             get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
  set_decoder_facts(block, vocabulary, positions, facts);
  VKF_ASSIGN(facts.width, get_size_or(config, "word_embed_proj_dim", facts.width, kMostWidth));
  if (facts.width != block.stack.width) {
    block.embedding.projection = "embedding.projection";
    block.embedding.zeros = "embedding.zeros";
    block.projection = "decoder.projection";
  }
  facts.source_tokens.positions = TokenFacts::Positions::kFromMask;
  facts.target_tokens = facts.source_tokens;
  block.embedding.positions = "positions";
  block.embedding.position_offset = kOptPositionOffset;
  block.embedding.tokens = facts.source_tokens;
  DecoderNames names{
      .prefix = "model.", .words = "decoder.embed_tokens.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(bool biased, config.get_bool_or("enable_bias", true));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(new Opt(std::move(facts), std::move(tokens), std::move(block),
                                              std::move(names), biased ? Bias::kYes : Bias::kNo));
}

}  // namespace vkformer
