// DeBERTa v2 and v3 (He et al., 2021 and 2023). It is BERT whose scores have content and distance
// apart, with a convolution beside the first layer in the largest models.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/deberta_v2.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

using Term = DisentangledConfig::Term;

BertNames deberta_names(int64_t layers) {
  BertNames names{.prefix = "deberta."};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.layer.query = "attention.self.query_proj";
  names.layer.key = "attention.self.key_proj";
  names.layer.value = "attention.self.value_proj";
  names.ignored = {"cls.*",
                   "lm_predictions.*",
                   "mask_predictions.*",
                   "classifier.*",
                   "qa_outputs.*",
                   "pooler.*",
                   "*encoder.LayerNorm.*",
                   "*rel_embeddings.weight",
                   "*position_embeddings.weight",
                   "*.pos_key_proj.*",
                   "*.pos_query_proj.*"};
  return names;
}

// "p2c|c2p", or a list of names: whether `name` is one of them.
Result<bool> lists_name(const JsonConfig& config, const char* key, const std::string& name) {
  VKF_ASSIGN(const std::vector<std::string> values, config.get_string_list_or(key, {}));
  for (const std::string& value : values) {
    std::string part;
    for (const char c : value + "|") {
      if (c != '|') {
        if (c != ' ') part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        continue;
      }
      if (part == name) return true;
      part.clear();
    }
  }
  return false;
}

Status read_distance_rows(const JsonConfig& config, int64_t positions, DistanceRowsConfig& rows) {
  VKF_ASSIGN(rows.farthest, config.get_int_or("max_relative_positions", -1));
  if (rows.farthest < 1) rows.farthest = positions;
  VKF_ASSIGN(const int64_t buckets, config.get_int_or("position_buckets", -1));
  rows.buckets = std::max<int64_t>(buckets, 0);
  rows.span = rows.buckets > 0 ? rows.buckets : rows.farthest;
  if (rows.farthest > kMostPositions || rows.span > kMostPositions) {
    return invalid_file(
        message({"[max_relative_positions] and [position_buckets] in ", config.where(), " are ",
                 rows.farthest, " and ", rows.buckets, ", but may be at most ", kMostPositions}));
  }
  const Status fits = check_distance_rows(rows, positions);
  return fits.ok() ? fits : invalid_file(config.where() + ": " + fits.error().message);
}

// The first layer's convolution.
Status read_deberta_conv(const JsonConfig& config, DisentangledConfig& form) {
  VKF_ASSIGN(form.kernel, config.get_int_or("conv_kernel_size", 0));
  if (form.kernel <= 0) {
    form.kernel = 0;
    return {};
  }
  if (form.kernel % 2 == 0 || form.kernel > 255) {
    return unsupported(message({"[conv_kernel_size] is ", form.kernel, " in ", config.where(),
                                "; supported are odd numbers up to 255"}));
  }
  VKF_ASSIGN(const int64_t groups, config.get_int_or("conv_groups", 1));
  if (groups != 1) {
    return unsupported(
        message({"[conv_groups] is ", groups, " in ", config.where(), "; only 1 is supported"}));
  }
  VKF_ASSIGN(form.activation, get_activation(config, "conv_act", "tanh"));
  return {};
}

Result<DisentangledConfig> read_disentangled(const JsonConfig& config, int64_t positions) {
  DisentangledConfig form;
  VKF_CHECK(read_deberta_conv(config, form));
  VKF_ASSIGN(const bool relative, config.get_bool_or("relative_attention", false));
  if (!relative) return form;
  VKF_CHECK(read_distance_rows(config, positions, form.rows));
  VKF_ASSIGN(const bool c2p, lists_name(config, "pos_att_type", "c2p"));
  VKF_ASSIGN(const bool p2c, lists_name(config, "pos_att_type", "p2c"));
  form.keys = c2p ? Term::kYes : Term::kNo;
  form.queries = p2c ? Term::kYes : Term::kNo;
  VKF_ASSIGN(const bool normed, lists_name(config, "norm_rel_ebd", "layer_norm"));
  if (normed) form.norm = DisentangledConfig::Norm::kYes;
  VKF_ASSIGN(const bool shared, config.get_bool_or("share_att_key", false));
  if (shared) form.projection = DisentangledConfig::Projection::kContent;
  return form;
}

// Widths that files of this family have alike; others are in no published one.
Status refuse_widths(const JsonConfig& config, const StackConfig& stack) {
  const struct {
    const char* key;
    int64_t width;
  } kWidths[] = {{"embedding_size", stack.width},
                 {"pooler_hidden_size", stack.width},
                 {"attention_head_size", stack.head()}};
  for (const auto& [key, width] : kWidths) {
    VKF_ASSIGN(const int64_t given, config.get_int_or(key, width));
    if (given == width) continue;
    return unsupported(message({"[", key, "] is ", given, " in ", config.where(), "; only ", width,
                                " is supported, as hidden_size makes it"}));
  }
  return {};
}

// 1 / sqrt(E (1 + terms)), whether or not relative_attention uses them.
Result<float> read_deberta_scale(const JsonConfig& config, const StackConfig& stack) {
  double terms = 1.0;
  for (const char* name : {"c2p", "p2c"}) {
    VKF_ASSIGN(const bool there, lists_name(config, "pos_att_type", name));
    if (there) terms += 1.0;
  }
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(stack.head()) * terms));
}

Status read_deberta_embedding(const JsonConfig& config, BertConfig& bert) {
  VKF_ASSIGN(const int64_t types, config.get_int_or("type_vocab_size", 0));
  if (types < 0 || types > kMostPositions) {
    return invalid_file(message({"[type_vocab_size] in ", config.where(), " is ", types,
                                 ", but must lie between 0 and ", kMostPositions}));
  }
  bert.facts.source_tokens.types = types;
  bert.block.embedding.tokens = bert.facts.source_tokens;
  bert.block.embedding.masked = TextEmbedding::Masked::kZero;
  VKF_ASSIGN(const bool biased, config.get_bool_or("position_biased_input", true));
  if (!biased) drop_position_table(bert);
  return {};
}

Status add_deberta_head(const JsonConfig& config, BertConfig& bert) {
  BertNames& names = bert.names;
  const ActivationKind activation = bert.block.stack.activation;
  switch (bert.facts.head) {
    case HeadKind::kMasked: {
      VKF_ASSIGN(const bool legacy, config.get_bool_or("legacy", true));
      const std::string head = legacy ? "cls.predictions.transform." : "lm_predictions.lm_head.";
      names.decoder = legacy ? "cls.predictions.decoder" : "lm_predictions.lm_head";
      names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
      if (!legacy) names.decoder_biases = {"lm_predictions.lm_head.bias"};
      add_masked_head(bert, head + "dense", activation, head + "LayerNorm");
      return {};
    }
    case HeadKind::kSequence: {
      VKF_ASSIGN(const ActivationKind pooled, get_activation(config, "pooler_hidden_act", "gelu"));
      add_sequence_head(bert, "pooler.dense", pooled, "classifier");
      return {};
    }
    default:
      add_shared_head(bert);
      return {};
  }
}

}  // namespace

Result<DebertaConfig> read_deberta_v2(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(BertConfig bert, read_bert_config(files,
                                               {.vocab = 128100,
                                                .width = 1536,
                                                .layers = 24,
                                                .heads = 24,
                                                .ffn = 6144,
                                                .types = 0,
                                                .epsilon = 1e-7},
                                               "DebertaV2Model"));
  StackConfig& stack = bert.block.stack;
  VKF_CHECK(refuse_widths(config, stack));
  VKF_CHECK(read_deberta_embedding(config, bert));
  VKF_ASSIGN(const float scale, read_deberta_scale(config, stack));
  stack.scales = {scale};
  VKF_ASSIGN(const DisentangledConfig form, read_disentangled(config, bert.facts.max_source));
  bert.names = deberta_names(stack.layers);
  return DebertaConfig{std::move(bert), form};
}

Result<std::unique_ptr<ModelFamily>> load_deberta_v2(const ModelFiles& files) {
  VKF_ASSIGN(DebertaConfig deberta, read_deberta_v2(files));
  BertConfig& bert = deberta.bert;
  auto made = std::make_shared<DisentangledForm>(deberta.form);
  made->set_width(bert.block.stack.width);
  bert.block.form = std::move(made);
  VKF_CHECK(add_deberta_head(files.config, bert));
  return make_bert(std::move(bert));
}

}  // namespace vkformer
