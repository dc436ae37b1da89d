// Longformer (Beltagy, Peters and Cohan, "Longformer: The long-document transformer", 2020). It is
// a RoBERTa whose tokens see a window and the global tokens, in time linear in their number.
#include "model/blocks/bert_layers.h"
#include "model/blocks/longformer_form.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

using Default = LongformerConfig::Default;

BertNames longformer_names(int64_t layers) {
  BertNames names{.prefix = "longformer.", .pooler = "pooler.dense"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "lm_head.decoder";
  names.decoder_biases = {"lm_head.decoder.bias", "lm_head.bias"};
  names.ignored = {"lm_head.*", "classifier.*", "qa_outputs.*"};
  return names;
}

Status read_form(const JsonConfig& config, BertConfig& bert) {
  LongformerConfig form{.heads = bert.block.stack.heads};
  VKF_ASSIGN(form.windows, read_attention_windows(config, bert.block.stack.layers));
  VKF_ASSIGN(form.separator, config.get_int_or("sep_token_id", 2));
  if (bert.facts.head == HeadKind::kSequence) form.without = Default::kFirst;
  if (bert.facts.head == HeadKind::kSpans) form.without = Default::kQuestion;
  bert.block.form = std::make_shared<LongformerForm>(std::move(form));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_longformer(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {}, "LongformerModel"));
  VKF_CHECK(read_positions_after_pad(files.config, bert));
  VKF_CHECK(read_form(files.config, bert));
  bert.names = longformer_names(bert.block.stack.layers);
  add_roberta_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
