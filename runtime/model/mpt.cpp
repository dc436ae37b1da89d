// MPT (MosaicML, 2023): slopes for positions (ALiBi; Press et al., 2021), norms without biases.
#include <bit>
#include <cmath>

#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr double kMostBias = 8.0;  // alibi_bias_max, which the library does not read

class Mpt : public NamedDecoder {
 public:
  using NamedDecoder::NamedDecoder;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;
};

void Mpt::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "blocks." + std::to_string(i) + ".";
    table.rows.push_back(gain_row(to + ".self.norm", from + "norm_1", d));
    table.rows.push_back(plain_linear_row(to + ".self.qkv", {from + "attn.Wqkv"}, 3 * d, d));
    table.rows.push_back(plain_linear_row(to + ".self.out", {from + "attn.out_proj"}, d, d));
    table.rows.push_back(gain_row(to + ".ffn.norm", from + "norm_2", d));
    table.rows.push_back(plain_linear_row(to + ".ffn.up", {from + "ffn.up_proj"}, s.ffn, d));
    table.rows.push_back(plain_linear_row(to + ".ffn.down", {from + "ffn.down_proj"}, d, s.ffn));
  }
  table.rows.push_back(gain_row(s.rows + ".norm", prefix + "norm_f", d));
}

// Of H heads, those of the next power of two: every second one from the second on, then the others.
std::vector<float> mpt_slopes(int64_t heads) {
  const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  const auto add = [&](int64_t first, int64_t step) {
    for (int64_t i = first; i < all && static_cast<int64_t>(slopes.size()) < heads; i += step) {
      slopes.push_back(static_cast<float>(
          std::exp2(-static_cast<double>(i + 1) * kMostBias / static_cast<double>(all))));
    }
  };
  if (all == heads) {
    add(0, 1);
  } else {
    add(1, 2);
    add(0, 2);
  }
  return slopes;
}

// What changes the mathematics and is not done here.
Status refuse_mpt_variants(const JsonConfig& config, const JsonConfig& attention) {
  VKF_ASSIGN(const bool slopes, attention.get_bool_or("alibi", true));
  if (!slopes) {
    return unsupported(message({"[attn_config.alibi] is false in ", config.where(),
                                "; learned positions are not supported"}));
  }
  VKF_ASSIGN(const std::string type, attention.get_string_or("attn_type", "multihead_attention"));
  if (type != "multihead_attention") {
    return unsupported(message({"[attn_config.attn_type] in ", config.where(), " is '", type,
                                "'; multihead_attention is supported"}));
  }
  for (const char* key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"}) {
    VKF_ASSIGN(const bool set, attention.get_bool_or(key, false));
    if (set) {
      return unsupported(message({"[attn_config.", key, "] is true in ", config.where(),
                                  "; this MPT variant is not supported"}));
    }
  }
  if (attention.has("clip_qkv")) {
    return unsupported(message({"[attn_config.clip_qkv] in ", config.where(),
                                " clips queries, keys and values, which is not supported"}));
  }
  if (config.has("logit_scale")) {
    return unsupported(message(
        {"[logit_scale] in ", config.where(), " scales the logits, which is not supported"}));
  }
  return {};
}

Status read_mpt_stack(const JsonConfig& config, const JsonConfig& attention, StackConfig& stack) {
  stack.rows = "decoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.causal = StackConfig::Causal::kYes;
  stack.activation = ActivationKind::kGelu;
  VKF_ASSIGN(stack.width, size_by_either(config, "d_model", "hidden_size", 2048, kMostWidth));
  VKF_ASSIGN(stack.layers,
             size_by_either(config, "n_layers", "num_hidden_layers", 24, kMostLayers));
  VKF_ASSIGN(stack.heads, size_by_either(config, "n_heads", "num_attention_heads", 16, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  stack.ffn = 4 * stack.width;  // the library does not read expansion_ratio
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-5));
  stack.slopes = mpt_slopes(stack.heads);
  if (!attention.has("softmax_scale")) return {};
  VKF_ASSIGN(const double scale, attention.get_double("softmax_scale"));
  if (!std::isfinite(static_cast<float>(scale))) {
    return invalid_file(message({"[attn_config.softmax_scale] in ", config.where(), " is ", scale,
                                 ", but must be a finite number"}));
  }
  stack.scales = {static_cast<float>(scale)};
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_mpt(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  const JsonConfig attention = config.object("attn_config");
  VKF_CHECK(attention.status());
  VKF_CHECK(refuse_mpt_variants(config, attention));
  ModelFacts facts{.family = "mpt", .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, "MptForCausalLM", facts, block));
  VKF_CHECK(read_mpt_stack(config, attention, block.stack));
  VKF_ASSIGN(const int64_t positions, get_size_or(config, "max_seq_len", 2048, kMostPositions));
  VKF_ASSIGN(const int64_t vocabulary, get_size_or(config, "vocab_size", 50368, kMostVocabulary));
  set_decoder_facts(block, vocabulary, positions, facts);
  DecoderNames names{.prefix = "transformer.", .words = "wte.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", true));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(
      new Mpt(std::move(facts), std::move(tokens), std::move(block), std::move(names)));
}

}  // namespace vkformer
