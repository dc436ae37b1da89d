// BERT (Devlin et al., 2018): the bare model with its pooler, and heads for masked words, classes
// of texts and tokens, and answers.
#include "model/blocks/bert_layers.h"
#include "model/family_list.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_bert(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {}, "BertModel"));
  bert.names = bert_names("bert.", bert.block.stack.layers);
  add_bert_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
