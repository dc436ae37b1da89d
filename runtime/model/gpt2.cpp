#include "model/gpt2.h"

#include <cmath>

#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class Gpt2 : public NamedDecoder {
 public:
  using NamedDecoder::NamedDecoder;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;
};

// Conv1D stores its matrix (K, N).
WeightRow conv1d_row(std::string name, const std::string& module, int64_t n, int64_t k) {
  WeightRow row = linear_row(std::move(name), {module}, n, k);
  row.axes = WeightRow::Axes::kInOut;
  return row;
}

void Gpt2::add_rows(const std::string& prefix, WeightTable& table) const {
  add_gpt2_rows(table, block().stack, facts().max_source, prefix);
}

void add_cross_rows(WeightTable& table, const StackConfig& s, const std::string& to,
                    const std::string& from) {
  const int64_t d = s.width;
  table.rows.push_back(norm_row(to + ".cross.norm", from + "ln_cross_attn", d));
  table.rows.push_back(conv1d_row(to + ".cross.q", from + "crossattention.q_attn", d, d));
  table.rows.push_back(conv1d_row(to + ".cross.kv", from + "crossattention.c_attn", 2 * d, d));
  table.rows.push_back(conv1d_row(to + ".cross.out", from + "crossattention.c_proj", d, d));
}

// 1 / sqrt(E) unless scale_attn_weights is false, divided by (layer + 1) where
// scale_attn_by_inverse_layer_idx is true.
Status read_scales(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(bool scaled, config.get_bool_or("scale_attn_weights", true));
  VKF_ASSIGN(bool by_layer, config.get_bool_or("scale_attn_by_inverse_layer_idx", false));
  if (scaled && !by_layer) return {};
  const double scale = scaled ? 1.0 / std::sqrt(static_cast<double>(stack.head())) : 1.0;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const double layers = by_layer ? static_cast<double>(i + 1) : 1.0;
    stack.scales.push_back(static_cast<float>(scale / layers));
  }
  return {};
}

}  // namespace

Status read_gpt2_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, size_by_either(config, "n_embd", "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.layers, size_by_either(config, "n_layer", "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.heads, size_by_either(config, "n_head", "num_attention_heads", 12, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "n_inner", 4 * stack.width, 4 * kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", "gelu_new"));
  return read_scales(config, stack);
}

void add_gpt2_rows(WeightTable& table, const StackConfig& s, int64_t positions,
                   const std::string& prefix) {
  const int64_t d = s.width;
  table.rows.push_back(table_row("positions", {prefix + "wpe.weight"}, {positions}, d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "h." + std::to_string(i) + ".";
    table.rows.push_back(norm_row(to + ".self.norm", from + "ln_1", d));
    table.rows.push_back(conv1d_row(to + ".self.qkv", from + "attn.c_attn", 3 * d, d));
    table.rows.push_back(conv1d_row(to + ".self.out", from + "attn.c_proj", d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "ln_2", d));
    table.rows.push_back(conv1d_row(to + ".ffn.up", from + "mlp.c_fc", s.ffn, d));
    table.rows.push_back(conv1d_row(to + ".ffn.down", from + "mlp.c_proj", d, s.ffn));
    if (s.cross == StackConfig::Cross::kYes) add_cross_rows(table, s, to, from);
  }
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "ln_f", d));
  // Causal masks that older versions of the library saved.
  table.ignored.push_back(prefix + "h.*.attn.bias");
  table.ignored.push_back(prefix + "h.*.attn.masked_bias");
  if (s.cross == StackConfig::Cross::kYes) {
    table.ignored.push_back(prefix + "h.*.crossattention.bias");
    table.ignored.push_back(prefix + "h.*.crossattention.masked_bias");
  }
}

Result<std::unique_ptr<ModelFamily>> load_gpt2(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(bool cross, config.get_bool_or("add_cross_attention", false));
  if (cross) {
    return unsupported(message({"[add_cross_attention] is true in ", config.where(),
                                "; GPT-2 is supported without an encoder"}));
  }
  ModelFacts facts{.family = "gpt2", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "GPT2LMHeadModel", facts, block));
  VKF_CHECK(read_gpt2_stack(config, block.stack));
  block.embedding.positions = "positions";
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 50257, kMostVocabulary));
  VKF_ASSIGN(int64_t positions, size_by_either(config, "n_positions", "max_position_embeddings",
                                               1024, kMostPositions));
  set_decoder_facts(block, vocabulary, positions, facts);
  DecoderNames names{.prefix = "transformer.", .words = "wte.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Gpt2(std::move(facts), std::move(tokens), std::move(block), std::move(names)));
}

}  // namespace vkformer
