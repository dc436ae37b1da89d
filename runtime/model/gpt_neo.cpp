// GPT-Neo (Black et al., 2021), the open form of GPT-3 (Brown et al., 2020): layers that see
// everything alternate with locally banded ones.
#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class GptNeo : public NamedDecoder {
 public:
  using NamedDecoder::NamedDecoder;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;
};

void GptNeo::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  table.rows.push_back(table_row("positions", {prefix + "wpe.weight"}, {facts().max_source}, d));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "h." + std::to_string(i) + ".";
    const std::string attn = from + "attn.attention.";
    table.rows.push_back(norm_row(to + ".self.norm", from + "ln_1", d));
    table.rows.push_back(plain_linear_row(
        to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {attn + "out_proj"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "ln_2", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {from + "mlp.c_fc"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.c_proj"}, d, s.ffn));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "ln_f", d));
  // Masks that older versions of the library saved.
  table.ignored.push_back(prefix + "h.*.attn.attention.bias");
  table.ignored.push_back(prefix + "h.*.attn.attention.masked_bias");
}

// Which layers see everything (kind 0) and which the last window_size tokens (kind 1), from
// attention_types or, without it, the attention_layers that the library derives.
Status read_kinds(const JsonConfig& config, StackConfig& stack) {
  std::vector<std::string> usual;
  for (int i = 0; i < 12; ++i) usual.insert(usual.end(), {"global", "local"});
  VKF_ASSIGN(std::vector<std::string> layers, config.get_string_list_or("attention_layers", usual));
  VKF_ASSIGN(layers, config.get_repeated_names_or("attention_types", layers, kMostLayers));
  if (static_cast<int64_t>(layers.size()) != stack.layers) {
    return invalid_file(
        message({"[attention_types] in ", config.where(), " describes ", layers.size(),
                 " layers, but num_layers is ", stack.layers, "; they must be as many"}));
  }
  VKF_ASSIGN(int64_t window, get_size_or(config, "window_size", 256, INT32_MAX));
  stack.kinds = {AttentionKind{}, AttentionKind{.window_left = window - 1}};
  for (const std::string& layer : layers) {
    if (layer != "global" && layer != "local") {
      return unsupported(message({"[attention_types] in ", config.where(), " has '", layer,
                                  "'; global and local are supported"}));
    }
    stack.kind_of.push_back(layer == "local" ? 1 : 0);
  }
  return {};
}

Status read_gpt_neo_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  stack.scales = {1.0f};  // its scores are not divided by sqrt(E)
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 2048, kMostWidth));
  VKF_ASSIGN(stack.layers,
             size_by_either(config, "num_layers", "num_hidden_layers", 24, kMostLayers));
  VKF_ASSIGN(stack.heads,
             size_by_either(config, "num_heads", "num_attention_heads", 16, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 4 * stack.width, 4 * kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", "gelu_new"));
  return read_kinds(config, stack);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gpt_neo(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "gpt_neo", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "GPTNeoForCausalLM", facts, block));
  VKF_CHECK(read_gpt_neo_stack(config, block.stack));
  block.embedding.positions = "positions";
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 50257, kMostVocabulary));
  VKF_ASSIGN(int64_t positions,
             get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
  set_decoder_facts(block, vocabulary, positions, facts);
  DecoderNames names{.prefix = "transformer.", .words = "wte.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new GptNeo(std::move(facts), std::move(tokens), std::move(block), std::move(names)));
}

}  // namespace vkformer
