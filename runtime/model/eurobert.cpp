// EuroBERT (Boizard et al., 2025): Llama's layers that see the whole text, with heads of encoders.
#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

BertNames eurobert_names(int64_t layers) {
  BertNames names{.prefix = "model.", .words = "embed_tokens.weight", .types = ""};
  for (int64_t i = 0; i < layers; ++i) names.layers.push_back("layers." + std::to_string(i));
  names.layer = {.query = "self_attn.q_proj",
                 .key = "self_attn.k_proj",
                 .value = "self_attn.v_proj",
                 .out = "self_attn.o_proj",
                 .out_norm = "input_layernorm",
                 .gate = "mlp.gate_proj",
                 .up = "mlp.up_proj",
                 .down = "mlp.down_proj",
                 .down_norm = "post_attention_layernorm"};
  names.final_norm = "norm";
  names.norm_bias = BertNames::Bias::kNo;
  names.decoder = "lm_head";
  // Frequencies that older versions of the library saved, and heads.
  names.ignored = {"*rotary_emb.inv_freq", "lm_head.*", "classifier.*", "dense.*"};
  return names;
}

Status read_eurobert_stack(const JsonConfig& config, BertConfig& bert) {
  StackConfig& stack = bert.block.stack;
  stack.norm = StackConfig::Norm::kRms;
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.gate = StackConfig::Gate::kYes;
  VKF_ASSIGN(stack.kv_heads, get_size_or(config, "num_key_value_heads", stack.heads, kMostWidth));
  if (stack.heads % stack.kv_heads != 0) {
    return invalid_file(message({"[num_key_value_heads] in ", config.where(), " is ",
                                 stack.kv_heads, ", but must divide the ", stack.heads, " heads"}));
  }
  bert.block.embedding.norm.clear();
  VKF_ASSIGN(const bool attention, config.get_bool_or("attention_bias", false));
  VKF_ASSIGN(const bool ffn, config.get_bool_or("mlp_bias", false));
  BertNames& names = bert.names;
  names.qkv_bias = names.out_bias = attention ? BertNames::Bias::kYes : BertNames::Bias::kNo;
  names.ffn_bias = ffn ? BertNames::Bias::kYes : BertNames::Bias::kNo;
  if (ffn) names.decoder_biases = {"lm_head.bias"};
  return {};
}

// "late": every token has logits, and the text has their mean. An output layer and a mean may
// change places, so the mean comes first.
Status add_eurobert_classes(const JsonConfig& config, BertConfig& bert) {
  VKF_ASSIGN(std::string pooling, config.get_string_or("classifier_pooling", "late"));
  HeadConfig head{
      .dense = "head.dense", .activation = ActivationKind::kGelu, .output = "classifier"};
  if (pooling == "late") {
    head.late_mean = HeadConfig::LateMean::kMasked;
  } else if (pooling == "bos") {
    head.input = HeadConfig::Input::kToken;
  } else if (pooling == "mean") {
    head.input = HeadConfig::Input::kMaskedMean;
  } else {
    return unsupported(message({"[classifier_pooling] in ", config.where(), " is '", pooling,
                                "'; supported are late, bos and mean"}));
  }
  const int64_t d = bert.facts.width;
  const auto classes = static_cast<int64_t>(bert.facts.labels.size());
  bert.block.heads.push_back(std::move(head));
  bert.head_rows.push_back(linear_row("head.dense", {"dense"}, d, d));
  bert.head_rows.push_back(linear_row("classifier", {"classifier"}, classes, d));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_eurobert(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(BertConfig bert, read_bert_config(files,
                                               {.vocab = 128256,
                                                .positions = 8192,
                                                .types = 0,
                                                .epsilon = 1e-5,
                                                .activation = "silu",
                                                .position_type = "rotary",
                                                .head_width_key = "head_dim",
                                                .epsilon_key = "rms_norm_eps"},
                                               "EuroBertModel"));
  bert.names = eurobert_names(bert.block.stack.layers);
  VKF_CHECK(read_eurobert_stack(config, bert));
  VKF_CHECK(read_rotary_positions(config, 10000.0, bert));
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      bert.block.heads.push_back({.output = "words"});
      break;
    case HeadKind::kSequence:
      VKF_CHECK(add_eurobert_classes(config, bert));
      break;
    case HeadKind::kSpans:
      return unsupported(
          message({"[architectures] of ", config.where(), " names '", bert.facts.architecture,
                   "', but this family has no head for question answering"}));
    default:
      add_shared_head(bert);
  }
  return make_bert(std::move(bert));
}

}  // namespace vkformer
