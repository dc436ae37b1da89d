// Mamba-2 (Dao and Gu, 2024, "Transformers are SSMs"): layers of one selective state each, without
// attention and feed-forward layers.
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/state_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class Mamba2 : public NamedDecoder {
 public:
  using NamedDecoder::NamedDecoder;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override {
    const StackConfig& s = block().stack;
    for (int64_t i = 0; i < s.layers; ++i) {
      const std::string to = s.layer_rows(i);
      const std::string from = prefix + "layers." + std::to_string(i) + ".";
      table.rows.push_back(gain_row(to + ".self.norm", from + "norm", s.width));
      add_mamba_rows(s, to, from + "mixer.", table);
    }
    table.rows.push_back(gain_row(s.rows + ".norm", prefix + "norm_f", s.width));
  }
};

Status read_mamba2_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.norm = StackConfig::Norm::kRms;
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  stack.tapped = StackConfig::Tapped::kGives;
  stack.heads = 1;  // of attention, which no layer has
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 4096, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 64, kMostLayers));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  VKF_ASSIGN(const int64_t expand, get_size_or(config, "expand", 2, 64));
  const MambaKeys keys{.heads = "num_heads",
                       .head_width = "head_dim",
                       .state = "state_size",
                       .groups = "n_groups",
                       .taps = "conv_kernel",
                       .conv_bias = "use_conv_bias",
                       .projection_bias = "use_bias"};
  VKF_CHECK(read_mamba(config, keys, {.state = 128, .groups = 8}, expand * stack.width, stack));
  stack.states.layers.assign(static_cast<size_t>(stack.layers), 1);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_mamba2(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "mamba2", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "Mamba2ForCausalLM", facts, block));
  VKF_CHECK(read_mamba2_stack(config, block.stack));
  VKF_ASSIGN(const int64_t vocabulary, get_size_or(config, "vocab_size", 32768, kMostVocabulary));
  set_decoder_facts(block, vocabulary, kMostPositions, facts);
  facts.decoder_heads = 0;
  DecoderNames names{.prefix = "backbone.", .words = "embeddings.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", false));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Mamba2(std::move(facts), std::move(tokens), std::move(block), std::move(names)));
}

}  // namespace vkformer
