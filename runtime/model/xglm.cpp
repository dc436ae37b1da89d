// XGLM (Lin et al., 2021): M2M-100's decoder alone: norms before the sublayers, sinusoidal
// positions after two rows of the table.
#include <cmath>

#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr int64_t kXglmPositionOffset = 2;

class Xglm : public NamedDecoder {
 public:
  Xglm(ModelFacts facts, GenerationFacts tokens, DecoderConfig block, DecoderNames names,
       int64_t pad)
      : NamedDecoder(std::move(facts), std::move(tokens), std::move(block), std::move(names)),
        pad_(pad) {}

  Status prepare(const Checkpoint& checkpoint) override;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  int64_t pad_;          // whose row of positions is zero; -1: none
  WeightRow positions_;  // sinusoids
};

Status Xglm::prepare(const Checkpoint& checkpoint) {
  VKF_ASSIGN(positions_, fairseq_positions("positions", facts().max_source + kXglmPositionOffset,
                                           facts().width, pad_));
  return NamedDecoder::prepare(checkpoint);
}

void Xglm::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  table.rows.push_back(positions_);
  add_bart_layers(table, s, prefix + "layers");
  table.rows.push_back(norm_row(s.rows + ".norm", prefix + "layer_norm", s.width));
  // Sinusoids that older versions of the library saved.
  table.ignored.push_back(prefix + "embed_positions.*");
}

Status read_xglm_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "decoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "d_model", 1024, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_layers", 24, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "attention_heads", 16, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "ffn_dim", 4096, 4 * kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "activation_function", "gelu"));
  VKF_ASSIGN(const bool cross, config.get_bool_or("add_cross_attention", false));
  if (!cross) return {};
  return unsupported(message({"[add_cross_attention] is true in ", config.where(),
                              "; an XGLM that attends to an encoder is not supported"}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_xglm(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "xglm", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "XGLMForCausalLM", facts, block));
  VKF_CHECK(read_xglm_stack(config, block.stack));
  VKF_ASSIGN(const int64_t positions,
             get_size_or(config, "max_position_embeddings", 2048, kMostPositions));
  VKF_ASSIGN(const int64_t vocabulary, get_size_or(config, "vocab_size", 256008, kMostVocabulary));
  set_decoder_facts(block, vocabulary, positions, facts);
  block.embedding.positions = "positions";
  block.embedding.position_offset = kXglmPositionOffset;
  VKF_ASSIGN(const bool scaled, config.get_bool_or("scale_embedding", true));
  if (scaled) block.embedding.scale = std::sqrt(static_cast<float>(block.stack.width));
  DecoderNames names{.prefix = "model.", .words = "embed_tokens.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(const int64_t pad, config.get_int_or("pad_token_id", 1));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Xglm(std::move(facts), std::move(tokens), std::move(block), std::move(names), pad));
}

}  // namespace vkformer
