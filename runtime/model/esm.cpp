// ESM-1b and ESM-2 (Rives et al., 2021; Lin et al., 2023). They are language models of proteins:
// pre-norm encoders with learned positions after the pad token's, or with rotary ones.
#include <bit>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/padded_tokens.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

constexpr const char* kEsmScales = "token_dropout_scales";

// Token dropout. In training a part of the masked tokens' embeddings was zero. A pass zeroes all of
// them, and scales the others so that a row keeps the mean that it had in training:
//
//   scale = (1 - 0.15 * 0.8) / (1 - mask tokens of the row / tokens that its attention mask keeps)
class EsmTokenDropout : public EncoderForm {
 public:
  // `mask`: id of the mask token; -1: none.
  explicit EsmTokenDropout(int64_t mask) : mask_(mask) {}

  Status read_inputs(const TensorMap&, ForwardInputs& result) const override {
    const std::vector<uint32_t>& ids = result.words.at("input_ids");
    const std::vector<uint32_t>& kept = result.words.at("key_mask");
    const int64_t tokens = result.shape.source;
    std::vector<uint32_t> scales(ids.size());
    for (int64_t row = 0; row < result.shape.batch; ++row) {
      int64_t masked = 0, length = 0;
      for (int64_t t = 0; t < tokens; ++t) {
        masked += is_mask(ids[static_cast<size_t>(row * tokens + t)]) ? 1 : 0;
        length += is_kept(kept, tokens, row, t) ? 1 : 0;
      }
      // A row of nothing but mask tokens is zero.
      const double left = static_cast<double>(length - masked) / static_cast<double>(length);
      const float scale =
          length == masked || length == 0 ? 0.0f : static_cast<float>(kTrained / left);
      for (int64_t t = 0; t < tokens; ++t) {
        const auto at = static_cast<size_t>(row * tokens + t);
        scales[at] = std::bit_cast<uint32_t>(is_mask(ids[at]) ? 0.0f : scale);
      }
    }
    result.words[kEsmScales] = std::move(scales);
    return {};
  }

 private:
  static constexpr double kTrained = 1.0 - 0.15 * 0.8;

  bool is_mask(uint32_t id) const { return static_cast<int64_t>(id) == mask_; }

  int64_t mask_;
};

BertNames esm_names(int64_t layers) {
  BertNames names{.prefix = "esm.", .types = "", .pooler = "pooler.dense"};
  names.embedding_norm = "embeddings.layer_norm";
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.layer.out_norm = "attention.LayerNorm";
  names.layer.down_norm = "LayerNorm";
  names.final_norm = "encoder.emb_layer_norm_after";
  names.decoder = "lm_head.decoder";
  names.decoder_biases = {"lm_head.bias"};
  names.ignored = {"lm_head.*", "classifier.*", "*contact_head.*", "*rotary_embeddings.inv_freq"};
  return names;
}

Status refuse_folding(const JsonConfig& config) {
  VKF_ASSIGN(bool folds, config.get_bool_or("is_folding_model", false));
  if (!folds) return {};
  return unsupported(message({"[is_folding_model] is true in ", config.where(),
                              "; ESMFold's structure module is not implemented"}));
}

// "absolute" or "rotary".
Result<bool> has_rotary_positions(const JsonConfig& config) {
  VKF_ASSIGN(std::string type, config.get_string_or("position_embedding_type", "absolute"));
  if (type == "absolute" || type == "rotary") return type == "rotary";
  return unsupported(message({"[position_embedding_type] is '", type, "' in ", config.where(),
                              "; supported are 'absolute' and 'rotary'"}));
}

Status read_esm_positions(const JsonConfig& config, bool rotary, BertConfig& bert) {
  if (!rotary) {
    VKF_ASSIGN(int64_t pad, config.get_int("pad_token_id"));
    return set_positions_after_pad(config, pad, bert);
  }
  VKF_CHECK(read_rotary_positions(config, 10000.0, bert));
  // Where the library kept them, by age; the second is what one version wrote.
  bert.names.frequencies = {"rotary_embeddings.inv_freq",
                            "encoder.layer.*.attention.self.rotary_embeddings.inv_freq",
                            "encoder.layer.0.attention.self.rotary_embeddings.inv_freq"};
  bert.names.ignored.push_back("*position_embeddings.weight");
  return {};
}

Status read_token_dropout(const JsonConfig& config, EncoderConfig& block) {
  VKF_ASSIGN(bool drops, config.get_bool_or("token_dropout", false));
  if (!drops) return {};
  VKF_ASSIGN(int64_t mask, config.get_int_or("mask_token_id", -1));
  block.embedding.row_scales = kEsmScales;
  block.form = std::make_shared<EsmTokenDropout>(mask);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_esm(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_folding(config));
  VKF_ASSIGN(const bool rotary, has_rotary_positions(config));
  VKF_ASSIGN(const int64_t vocab, get_size(config, "vocab_size", kMostVocabulary));
  VKF_ASSIGN(BertConfig bert, read_bert_config(files,
                                               {.vocab = vocab,
                                                .positions = 1026,
                                                .types = 0,
                                                .position_type = rotary ? "rotary" : "absolute",
                                                .head_width_key = rotary ? "head_dim" : nullptr},
                                               "EsmModel"));
  EncoderConfig& block = bert.block;
  block.stack.order = StackConfig::Order::kPre;
  block.stack.final_norm = StackConfig::FinalNorm::kYes;
  block.stack.activation = ActivationKind::kGelu;  // whatever the configuration says
  bert.names = esm_names(block.stack.layers);
  VKF_CHECK(read_esm_positions(config, rotary, bert));
  VKF_CHECK(read_token_dropout(config, block));
  block.embedding.masked = TextEmbedding::Masked::kZero;
  VKF_ASSIGN(bool normed, config.get_bool_or("emb_layer_norm_before", false));
  if (!normed) block.embedding.norm.clear();
  if (bert.facts.head == HeadKind::kSpans) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", bert.facts.architecture,
                 "', but this family has no head for question answering"}));
  }
  add_roberta_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
