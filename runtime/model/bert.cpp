// BERT (Devlin et al., 2018): the bare model with its pooler, and heads for masked words, classes
// of texts and tokens, and answers.
#include "model/blocks/bert_layers.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

BertNames bert_names(int64_t layers) {
  BertNames names{.prefix = "bert.", .pooler = "pooler.dense"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "cls.predictions.decoder";
  names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
  names.ignored = {"cls.*", "classifier.*", "qa_outputs.*"};
  return names;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_bert(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {}, "BertModel"));
  bert.names = bert_names(bert.block.stack.layers);
  const std::string head = "cls.predictions.transform.";
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, head + "dense", bert.block.stack.activation, head + "LayerNorm");
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
