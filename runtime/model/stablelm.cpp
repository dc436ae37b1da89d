// StableLM (Bellagente et al., 2024): LLaMA's layers with LayerNorms and partly rotary heads;
// perhaps parallel branches, and norms of queries and keys.
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_stablelm_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.norm = StackConfig::Norm::kLayer;
  VKF_ASSIGN(const bool parallel, config.get_bool_or("use_parallel_residual", false));
  if (parallel) {
    stack.order = StackConfig::Order::kParallel;
    stack.shared_norm = StackConfig::SharedNorm::kYes;
  }
  VKF_ASSIGN(const bool normed, config.get_bool_or("qk_layernorm", false));
  if (normed) stack.qk_norm = StackConfig::QueryKeyNorm::kHeads;
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_stablelm(const ModelFiles& files) {
  LlamaKind kind{.family = "stablelm",
                 .architecture = "StableLmForCausalLM",
                 .vocabulary = 50304,
                 .width = 2560,
                 .kv_heads = 32,
                 .ffn = 6912,
                 .max_positions = 4096,
                 .epsilon_key = "layer_norm_eps",
                 .epsilon = 1e-5,
                 .norm_bias = LlamaKind::NormBias::kYes,
                 .head_norms = LlamaKind::HeadNorms::kApart,
                 .partial_rotary = 0.25,
                 .read_rest = read_stablelm_rest};
  VKF_ASSIGN(kind.biases.qkv, files.config.get_bool_or("use_qkv_bias", false));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
