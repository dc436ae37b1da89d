// Jina Embeddings v3 (Sturua et al., 2024): XLM-RoBERTa with rotary positions that count from 0.
// Adapters of single tasks (LoRA) are in files of their own, which this family does not read.
#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

BertNames jina_names(int64_t layers) {
  BertNames names{.prefix = "roberta.", .pooler = "pooler.dense"};
  names.embedding_norm = "emb_ln";
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layers." + std::to_string(i));
  }
  names.layer = {.qkv = "mixer.Wqkv",
                 .out = "mixer.out_proj",
                 .out_norm = "norm1",
                 .up = "mlp.fc1",
                 .down = "mlp.fc2",
                 .down_norm = "norm2"};
  names.decoder = "lm_head.decoder";
  names.decoder_biases = {"lm_head.decoder.bias", "lm_head.bias"};
  names.ignored = {"lm_head.*", "classifier.*", "qa_outputs.*"};
  return names;
}

// Files with the adapters of all tasks inside keep them as parametrizations of each matrix.
Status refuse_adapters(const JsonConfig& config) {
  if (!config.has("lora_adaptations")) return {};
  return unsupported(message({"[lora_adaptations] is set in ", config.where(),
                              "; adapters of tasks inside a model's weights are not implemented. "
                              "Merge one task's adapter into the weights, and remove the key."}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_jina_embeddings_v3(const ModelFiles& files) {
  VKF_CHECK(refuse_adapters(files.config));
  VKF_ASSIGN(BertConfig bert, read_bert_config(files,
                                               {.vocab = 250002,
                                                .width = 1024,
                                                .layers = 24,
                                                .heads = 16,
                                                .ffn = 4096,
                                                .positions = 8194,
                                                .types = 1,
                                                .epsilon = 1e-5,
                                                .position_type = "rotary",
                                                .head_width_key = "head_dim"},
                                               "JinaEmbeddingsV3Model"));
  VKF_CHECK(read_rotary_positions(files.config, 20000.0, bert));
  bert.names = jina_names(bert.block.stack.layers);
  add_roberta_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
