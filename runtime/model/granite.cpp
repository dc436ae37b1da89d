// Granite (IBM, 2024): LLaMA's layers with multipliers of embeddings, scores, branches and logits.
#include "model/granite.h"

#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {

Status read_granite_multipliers(const JsonConfig& config, DecoderConfig& block) {
  VKF_ASSIGN(block.embedding.scale, read_multiplier(config, "embedding_multiplier", 1.0));
  VKF_ASSIGN(const float scale, read_multiplier(config, "attention_multiplier", 1.0));
  block.stack.scales = {scale};
  VKF_ASSIGN(block.stack.branch_scale, read_multiplier(config, "residual_multiplier", 1.0));
  VKF_ASSIGN(const float divisor, read_multiplier(config, "logits_scaling", 1.0));
  if (divisor == 0.0f) {
    return invalid_file(
        message({"[logits_scaling] in ", config.where(), " is 0, but logits are divided by it"}));
  }
  block.head_scale = 1.0f / divisor;
  return {};
}

Result<std::unique_ptr<ModelFamily>> load_granite(const ModelFiles& files) {
  LlamaKind kind{.family = "granite",
                 .architecture = "GraniteForCausalLM",
                 .read_rest = read_granite_multipliers};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  VKF_ASSIGN(kind.biases.ffn, files.config.get_bool_or("mlp_bias", false));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
