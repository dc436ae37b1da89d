// Cohere's Command R (2024): LLaMA's projections in parallel branches that share a LayerNorm
// without bias, rotary positions of neighboring columns, scaled logits.
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_cohere_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.norm = StackConfig::Norm::kLayer;
  stack.order = StackConfig::Order::kParallel;
  stack.shared_norm = StackConfig::SharedNorm::kYes;
  stack.rotaries[0].pairs = RotaryPairs::kInterleaved;
  VKF_ASSIGN(const bool normed, config.get_bool_or("use_qk_norm", false));
  if (normed) stack.qk_norm = StackConfig::QueryKeyNorm::kHeads;
  VKF_ASSIGN(block.head_scale, read_multiplier(config, "logit_scale", 0.0625));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_cohere(const ModelFiles& files) {
  LlamaKind kind{.family = "cohere",
                 .architecture = "CohereForCausalLM",
                 .vocabulary = 256000,
                 .width = 8192,
                 .layers = 40,
                 .heads = 64,
                 .ffn = 22528,
                 .max_positions = 8192,
                 .epsilon_key = "layer_norm_eps",
                 .epsilon = 1e-5,
                 .rotary = {.theta = 500000.0},
                 .tied = true,
                 .read_rest = read_cohere_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
