// Falcon (Almazrouei et al., 2023): rotary positions or slopes, keys and values that heads share,
// branches side by side or one after the other.
#include <cmath>

#include "base/half.h"
#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"
#include "ops/relative_positions.h"

namespace vkformer {
namespace {

class Falcon : public NamedDecoder {
 public:
  Falcon(ModelFacts facts, GenerationFacts generation, DecoderConfig block, DecoderNames names,
         bool biased, bool two_norms)
      : NamedDecoder(std::move(facts), std::move(generation), std::move(block), std::move(names)),
        biased_(biased),
        two_norms_(two_norms) {}

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  bool biased_;
  bool two_norms_;  // of parallel branches
};

void Falcon::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  const auto linear = biased_ ? linear_row : plain_linear_row;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "h." + std::to_string(i) + ".";
    const std::string attn = from + "self_attention.";
    WeightRow qkv = linear(to + ".self.qkv", {attn + "query_key_value"}, s.qkv_width(), d);
    qkv.row_order = grouped_qkv_order(s.heads, s.kv(), s.head());
    table.rows.push_back(std::move(qkv));
    table.rows.push_back(linear(to + ".self.out", {attn + "dense"}, d, d));
    table.rows.push_back(linear(to + ".ffn.up", {from + "mlp.dense_h_to_4h"}, s.ffn, d));
    table.rows.push_back(linear(to + ".ffn.down", {from + "mlp.dense_4h_to_h"}, d, s.ffn));
    const std::string first = two_norms_ ? "ln_attn" : "input_layernorm";
    table.rows.push_back(norm_row(to + ".self.norm", from + first, d));
    if (s.shared_norm == StackConfig::SharedNorm::kYes) continue;
    const std::string second = two_norms_ ? "ln_mlp" : "post_attention_layernorm";
    table.rows.push_back(norm_row(to + ".ffn.norm", from + second, d));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "ln_f", d));
  // Frequencies that older versions of the library saved.
  table.ignored.push_back(prefix + "*.inv_freq");
}

// The new architecture has parallel branches whatever parallel_attn says, and groups of heads
// whatever multi_query says.
Status read_falcon_stack(const JsonConfig& config, bool grouped, StackConfig& stack) {
  stack.rows = "decoder";
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, size_by_either(config, "n_embed", "hidden_size", 4544, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 32, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 71, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "ffn_hidden_size", 4 * stack.width, 4 * kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation", "gelu"));
  VKF_ASSIGN(const bool one_key, config.get_bool_or("multi_query", true));
  VKF_ASSIGN(const int64_t groups, get_size_or(config, "num_kv_heads", stack.heads, kMostWidth));
  stack.kv_heads = grouped ? groups : one_key ? 1 : stack.heads;
  if (stack.heads % stack.kv_heads != 0) {
    return invalid_file(message({"[num_kv_heads] in ", config.where(), " is ", stack.kv_heads,
                                 ", but must divide the ", stack.heads, " attention heads"}));
  }
  VKF_ASSIGN(const bool parallel, config.get_bool_or("parallel_attn", true));
  stack.order = parallel || grouped ? StackConfig::Order::kParallel : StackConfig::Order::kPre;
  return {};
}

// The library rounds slopes to bfloat16 and divides them as it divides the scores. It rounds each
// product of slope and position as well, which this code does not: the products here are exact.
// Where all slopes are powers of two (up to 8 heads), results agree up to position 256.
void set_falcon_slopes(StackConfig& stack) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(stack.head()));
  for (double slope : alibi_slopes(stack.heads)) {
    const float rounded = float_from_bfloat(bfloat_from_float(static_cast<float>(slope)));
    stack.slopes.push_back(static_cast<float>(rounded * scale));
  }
}

// How many tokens the positions reach.
Result<int64_t> read_falcon_positions(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(const int64_t positions,
             get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
  VKF_ASSIGN(const bool slopes, config.get_bool_or("alibi", false));
  if (slopes) {
    set_falcon_slopes(stack);
    return positions;
  }
  RotarySetup rotary{.width = static_cast<uint32_t>(stack.head())};
  VKF_ASSIGN(rotary.scaling, read_model_rotary(config, {.max_positions = positions}));
  VKF_CHECK(check_rotary_scaling(rotary.scaling, rotary.width, config.where()));
  stack.kinds = {AttentionKind{.rotary = 0}};
  stack.rotaries = {rotary};
  return stretched_positions(rotary.scaling, kMostPositions);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_falcon(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "falcon", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "FalconForCausalLM", facts, block));
  VKF_ASSIGN(const bool grouped, config.get_bool_or("new_decoder_architecture", false));
  VKF_CHECK(read_falcon_stack(config, grouped, block.stack));
  VKF_ASSIGN(const int64_t norms, config.get_int_or("num_ln_in_parallel_attn", grouped ? 2 : 1));
  const bool two_norms = grouped && norms == 2;
  if (block.stack.order == StackConfig::Order::kParallel && !two_norms) {
    block.stack.shared_norm = StackConfig::SharedNorm::kYes;
  }
  VKF_ASSIGN(const int64_t positions, read_falcon_positions(config, block.stack));
  VKF_ASSIGN(const int64_t vocabulary, get_size_or(config, "vocab_size", 65024, kMostVocabulary));
  set_decoder_facts(block, vocabulary, positions, facts);
  DecoderNames names{
      .prefix = "transformer.", .words = "word_embeddings.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(const bool biased, config.get_bool_or("bias", false));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(new Falcon(
      std::move(facts), std::move(tokens), std::move(block), std::move(names), biased, two_norms));
}

}  // namespace vkformer
