#include "model/roberta.h"

#include "model/blocks/bert_layers.h"

namespace vkformer {
namespace {

BertNames roberta_names(int64_t layers) {
  BertNames names{.prefix = "roberta.", .pooler = "pooler.dense"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "lm_head.decoder";
  names.decoder_biases = {"lm_head.decoder.bias", "lm_head.bias"};
  names.ignored = {"lm_head.*", "classifier.*", "qa_outputs.*"};
  return names;
}

// Positions of real tokens are pad + 1, pad + 2, ...; that of pad tokens is pad.
Status read_positions(const JsonConfig& config, BertConfig& bert) {
  ModelFacts& facts = bert.facts;
  VKF_ASSIGN(int64_t pad, config.get_int_or("pad_token_id", 1));
  const int64_t rows = facts.max_source;
  if (pad < 0 || pad >= rows - 1) {
    return invalid_file("[pad_token_id] in " + config.where() + " is " + std::to_string(pad) +
                        ", but positions begin behind it and max_position_embeddings is " +
                        std::to_string(rows) + "; it must lie between 0 and " +
                        std::to_string(rows - 2));
  }
  facts.source_tokens.positions = TokenFacts::Positions::kFromIds;
  facts.source_tokens.pad = pad;
  facts.max_source = rows - pad - 1;
  bert.block.embedding.tokens = facts.source_tokens;
  bert.block.embedding.position_offset = pad + 1;
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_roberta(const ModelFiles& files) {
  VKF_ASSIGN(std::string type, files.config.get_string("model_type"));
  const bool xlm = type == "xlm-roberta";
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {.vocab = xlm ? 30522 : 50265},
                                               xlm ? "XLMRobertaModel" : "RobertaModel"));
  VKF_CHECK(read_positions(files.config, bert));
  bert.names = roberta_names(bert.block.stack.layers);
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "lm_head.dense", ActivationKind::kGelu, "lm_head.layer_norm");
      break;
    case HeadKind::kSequence:
      add_sequence_head(bert, "classifier.dense", ActivationKind::kTanh, "classifier.out_proj");
      break;
    default:
      add_shared_head(bert);
  }
  return make_bert(std::move(bert));
}

}  // namespace vkformer
