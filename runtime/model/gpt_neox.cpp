// GPT-NeoX (Black et al., 2022): partly rotary heads, attention and feed-forward side by side.
#include <cmath>

#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class GptNeox : public NamedDecoder {
 public:
  GptNeox(ModelFacts facts, GenerationFacts generation, DecoderConfig block, DecoderNames names,
          bool attention_bias)
      : NamedDecoder(std::move(facts), std::move(generation), std::move(block), std::move(names)),
        attention_bias_(attention_bias) {}

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  bool attention_bias_;
};

void GptNeox::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "layers." + std::to_string(i) + ".";
    WeightRow qkv = linear_row(to + ".self.qkv", {from + "attention.query_key_value"}, 3 * d, d);
    qkv.row_order = grouped_qkv_order(s.heads, s.heads, s.head());
    WeightRow out = linear_row(to + ".self.out", {from + "attention.dense"}, d, d);
    if (!attention_bias_) {
      qkv.biases.clear();
      out.biases.clear();
    }
    table.rows.push_back(norm_row(to + ".self.norm", from + "input_layernorm", d));
    table.rows.push_back(std::move(qkv));
    table.rows.push_back(std::move(out));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "post_attention_layernorm", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {from + "mlp.dense_h_to_4h"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.dense_4h_to_h"}, d, s.ffn));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "final_layer_norm", d));
  // Causal masks and frequencies that older versions of the library saved.
  for (const char* buffer : {"bias", "masked_bias", "rotary_emb.inv_freq"}) {
    table.ignored.push_back(prefix + "layers.*.attention." + buffer);
  }
}

Status read_gpt_neox_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 6144, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 44, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 64, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 24576, kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(bool parallel, config.get_bool_or("use_parallel_residual", true));
  stack.order = parallel ? StackConfig::Order::kParallel : StackConfig::Order::kPre;
  return {};
}

// Fills the stack's rotary positions; returns how many tokens they reach.
Result<int64_t> read_positions(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(int64_t positions,
             get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
  RotarySetup rotary;
  VKF_ASSIGN(const double older, config.get_double_or("rotary_pct", 0.25));
  VKF_ASSIGN(rotary.width, read_rotary_width(config, stack.head(), older));
  VKF_ASSIGN(rotary.scaling,
             read_model_rotary(config, {.max_positions = positions}, "rotary_emb_base"));
  if (rotary.width == 0) return positions;
  VKF_CHECK(check_rotary_scaling(rotary.scaling, rotary.width, config.where()));
  stack.kinds = {AttentionKind{.rotary = 0}};
  stack.rotaries = {rotary};
  return stretched_positions(rotary.scaling, kMostPositions);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gpt_neox(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "gpt_neox", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "GPTNeoXForCausalLM", facts, block));
  VKF_CHECK(read_gpt_neox_stack(config, block.stack));
  VKF_ASSIGN(int64_t positions, read_positions(config, block.stack));
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 50432, kMostVocabulary));
  set_decoder_facts(block, vocabulary, positions, facts);
  DecoderNames names{.prefix = "gpt_neox.", .words = "embed_in.weight", .head = "embed_out.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", false));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(bool attention_bias, config.get_bool_or("attention_bias", true));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(new GptNeox(
      std::move(facts), std::move(tokens), std::move(block), std::move(names), attention_bias));
}

}  // namespace vkformer
