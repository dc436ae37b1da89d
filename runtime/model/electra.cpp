// ELECTRA (Clark et al., 2020): BERT with an embedding narrower than its layers, a discriminator
// of replaced tokens, and no pooler.
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr BertDefaults kElectraDefaults{.width = 256, .heads = 4, .ffn = 1024};
constexpr int64_t kElectraEmbeddingWidth = 128;

BertNames electra_names(int64_t layers) {
  BertNames names{.prefix = "electra."};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "generator_lm_head";
  names.decoder_biases = {"generator_lm_head.bias"};
  names.ignored = {"generator_*", "discriminator_predictions.*", "classifier.*", "qa_outputs.*"};
  return names;
}

// logits (B, S): whether a token was replaced.
void add_discriminator(BertConfig& bert) {
  const std::string module = "discriminator_predictions.";
  const int64_t d = bert.facts.width;
  bert.block.heads.push_back({.dense = "head.dense",
                              .activation = bert.block.stack.activation,
                              .output = "head.output",
                              .squeeze = HeadConfig::Squeeze::kYes});
  bert.head_rows.push_back(linear_row("head.dense", {module + "dense"}, d, d));
  bert.head_rows.push_back(linear_row("head.output", {module + "dense_prediction"}, 1, d));
}

void add_electra_head(BertConfig& bert) {
  switch (bert.facts.head) {
    case HeadKind::kDiscriminator:
      return add_discriminator(bert);
    case HeadKind::kMasked:
      return add_masked_head(bert, "generator_predictions.dense", ActivationKind::kGelu,
                             "generator_predictions.LayerNorm");
    case HeadKind::kSequence:
      return add_sequence_head(bert, "classifier.dense", ActivationKind::kGelu,
                               "classifier.out_proj");
    default:
      return add_shared_head(bert);
  }
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_electra(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, kElectraDefaults, "ElectraModel"));
  bert.names = electra_names(bert.block.stack.layers);
  VKF_ASSIGN(bert.embedding_width,
             get_size_or(files.config, "embedding_size", kElectraEmbeddingWidth, kMostWidth));
  if (bert.embedding_width != bert.facts.width) {
    bert.names.projection = "embeddings_project";
    bert.block.embedding.projection = "embedding.projection";
  }
  // Its pre-training is the discriminator's.
  if (bert.facts.architecture.ends_with("ForPreTraining")) {
    bert.facts.head = HeadKind::kDiscriminator;
    bert.facts.target_vocab = 0;
  }
  add_electra_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
