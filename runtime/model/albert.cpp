// ALBERT (Lan et al., 2019): BERT with an embedding narrower than its layers, and layers that share
// their weights by groups.
#include <algorithm>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

constexpr BertDefaults kAlbertDefaults{
    .vocab = 30000, .width = 4096, .heads = 64, .ffn = 16384, .activation = "gelu_new"};
constexpr int64_t kAlbertEmbeddingWidth = 128;

BertNames albert_names(int64_t groups, int64_t inner) {
  BertNames names{.prefix = "albert.", .projection = "encoder.embedding_hidden_mapping_in"};
  names.layer = {.query = "attention.query",
                 .key = "attention.key",
                 .value = "attention.value",
                 .out = "attention.dense",
                 .out_norm = "attention.LayerNorm",
                 .up = "ffn",
                 .down = "ffn_output",
                 .down_norm = "full_layer_layer_norm"};
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < inner; ++i) {
      names.layers.push_back("encoder.albert_layer_groups." + std::to_string(group) +
                             ".albert_layers." + std::to_string(i));
    }
  }
  names.pooler = "pooler";
  names.decoder = "predictions.decoder";
  names.decoder_biases = {"predictions.decoder.bias", "predictions.bias"};
  names.ignored = {"predictions.*", "sop_classifier.*", "classifier.*", "qa_outputs.*"};
  return names;
}

// Step i of `steps` runs the layers of group floor(i / (steps / groups)), one after the other; each
// counts as a layer.
Status share_layers(const JsonConfig& config, BertConfig& bert) {
  StackConfig& stack = bert.block.stack;
  const int64_t steps = stack.layers;
  VKF_ASSIGN(int64_t groups, get_size_or(config, "num_hidden_groups", 1, kMostLayers));
  VKF_ASSIGN(int64_t inner, get_size_or(config, "inner_group_num", 1, kMostLayers));
  if (steps * inner > kMostLayers || groups * inner > kMostLayers) {
    return invalid_file(
        message({"[inner_group_num] in ", config.where(), " is ", inner, ", which makes more than ",
                 kMostLayers, " layers of ", steps, " steps and ", groups, " groups"}));
  }
  // In double, as the models were trained: a quotient that is not exact may round either way.
  const double share = static_cast<double>(steps) / static_cast<double>(groups);
  for (int64_t step = 0; step < steps; ++step) {
    const auto group = static_cast<int64_t>(static_cast<double>(step) / share);
    for (int64_t i = 0; i < inner; ++i) {
      stack.rows_of.push_back(std::min(group, groups - 1) * inner + i);
    }
  }
  stack.layers = steps * inner;
  bert.facts.encoder_layers = stack.layers;
  bert.names = albert_names(groups, inner);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_albert(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, kAlbertDefaults, "AlbertModel"));
  VKF_CHECK(share_layers(files.config, bert));
  VKF_ASSIGN(bert.embedding_width,
             get_size_or(files.config, "embedding_size", kAlbertEmbeddingWidth, kMostWidth));
  bert.block.embedding.projection = "embedding.projection";
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "predictions.dense", bert.block.stack.activation,
                      "predictions.LayerNorm");
      break;
    case HeadKind::kSequence:
      add_pooled_head(bert, "classifier");
      break;
    default:
      add_shared_head(bert);
  }
  return make_bert(std::move(bert));
}

}  // namespace vkformer
