// RoBERTa (Liu et al., 2019), XLM-RoBERTa (Conneau et al., 2019) and CamemBERT (Martin et al.,
// 2019). They are BERT whose positions begin after the pad token's, with its own heads.
#include "model/blocks/bert_layers.h"
#include "model/family_list.h"

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

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_roberta(const ModelFiles& files) {
  VKF_ASSIGN(std::string type, files.config.get_string("model_type"));
  const bool roberta = type == "roberta";
  const char* base = roberta               ? "RobertaModel"
                     : type == "camembert" ? "CamembertModel"
                                           : "XLMRobertaModel";
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {.vocab = roberta ? 50265 : 30522}, base));
  VKF_CHECK(read_positions_after_pad(files.config, bert));
  bert.names = roberta_names(bert.block.stack.layers);
  add_roberta_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
