// ModernBERT's decoder (Weller et al., 2025, Ettin). It has its layers with a causal mask and
// separate projections. Its language head is a dense layer, a norm and the words.
#include <algorithm>

#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/modernbert.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

class ModernBertDecoder : public NamedDecoder {
 public:
  ModernBertDecoder(ModelFacts facts, GenerationFacts tokens, DecoderConfig block,
                    DecoderNames names, ModernBertBiases biases)
      : NamedDecoder(std::move(facts), std::move(tokens), std::move(block), std::move(names)),
        biases_(biases) {}

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;
  void add_class_rows(WeightTable& table) const override;

 private:
  ModernBertBiases biases_;
};

void ModernBertDecoder::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  const auto add = [&](WeightRow row, bool biased) {
    if (!biased) row.biases.clear();
    table.rows.push_back(std::move(row));
  };
  const auto add_norm = [&](const std::string& to, const std::string& from) {
    add(norm_row(to, from, d), biases_.norm);
  };
  add_norm("embedding.norm", prefix + "embeddings.norm");
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "layers." + std::to_string(i) + ".";
    const std::string attn = from + "attn.";
    if (i > 0) add_norm(to + ".self.norm", from + "attn_norm");
    add(linear_row(to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d),
        biases_.attention);
    add(linear_row(to + ".self.out", {attn + "Wo"}, d, d), biases_.attention);
    add_norm(to + ".ffn.norm", from + "mlp_norm");
    add(in_gate_pairs(linear_row(to + ".ffn.up", {from + "mlp.Wi"}, 2 * s.ffn, d)),
        biases_.feed_forward);
    add(linear_row(to + ".ffn.down", {from + "mlp.Wo"}, d, s.ffn), biases_.feed_forward);
  }
  add_norm(s.rows + ".norm", prefix + "final_norm");
  if (!block().head_dense.empty()) {
    const std::string head = block().classes.empty() ? "lm_head." : "head.";
    add(linear_row(block().head_dense, {head + "dense"}, d, d), biases_.dense);
    add_norm(block().head_norm, head + "norm");
  }
  table.ignored.insert(table.ignored.end(), {"decoder.*", "head.*"});
}

void ModernBertDecoder::add_class_rows(WeightTable& table) const {
  table.rows.push_back(biased_row(biases_.dense, block().classes, {"classifier"},
                                  static_cast<int64_t>(facts().labels.size()), facts().width));
}

// Windows end with the query: half of local_attention, as far as the encoder looks back.
Status read_decoder_windows(const JsonConfig& config, StackConfig& stack) {
  VKF_CHECK(read_modernbert_layer_types(config, stack));
  VKF_ASSIGN(const int64_t local, get_size_or(config, "local_attention", 128, 2 * kMostPositions));
  VKF_ASSIGN(const int64_t window, get_size_or(config, "sliding_window",
                                               std::max<int64_t>(local / 2, 1), kMostPositions));
  stack.kinds = {{.rotary = kModernBertFull},
                 {.window_left = window - 1, .rotary = kModernBertSliding}};
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_modernbert_decoder(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "modernbert-decoder", .sentence = files.sentence};
  DecoderConfig block;
  StackConfig& stack = block.stack;
  VKF_CHECK(read_decoder_head(config, "ModernBertDecoderForCausalLM", facts, block));
  stack.rows = "decoder";
  stack.causal = StackConfig::Causal::kYes;
  VKF_CHECK(read_modernbert_sizes(config, stack));
  VKF_CHECK(read_decoder_windows(config, stack));
  VKF_ASSIGN(const int64_t vocabulary, get_size_or(config, "vocab_size", 50368, kMostVocabulary));
  VKF_ASSIGN(const int64_t positions,
             get_size_or(config, "max_position_embeddings", 8192, kMostPositions));
  VKF_CHECK(read_modernbert_rotaries(config, positions, stack));
  set_decoder_facts(block, vocabulary, positions, facts);
  VKF_ASSIGN(const ModernBertBiases biases, read_modernbert_biases(config));
  block.embedding.norm = "embedding.norm";
  DecoderNames names{
      .prefix = "model.", .words = "embeddings.tok_embeddings.weight", .head = "decoder.weight"};
  if (!block.head.empty() || !block.classes.empty()) {
    block.head_dense = "head.dense";
    block.head_norm = "head.norm";
    VKF_ASSIGN(block.head_activation, get_activation(config, "classifier_activation", "gelu"));
    if (biases.decoder) names.head_bias = "decoder.bias";
  }
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(new ModernBertDecoder(
      std::move(facts), std::move(tokens), std::move(block), std::move(names), biases));
}

}  // namespace vkformer
