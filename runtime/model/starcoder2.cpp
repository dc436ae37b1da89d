// StarCoder2 (Lozhkov et al., 2024): LLaMA's attention, LayerNorms with biases, no gate.
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_starcoder2_rest(const JsonConfig& config, DecoderConfig& block) {
  block.stack.norm = StackConfig::Norm::kLayer;
  return read_one_window(config, block);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_starcoder2(const ModelFiles& files) {
  LlamaKind kind{.family = "starcoder2",
                 .architecture = "Starcoder2ForCausalLM",
                 .vocabulary = 49152,
                 .width = 3072,
                 .layers = 30,
                 .heads = 24,
                 .kv_heads = 2,
                 .ffn = 12288,
                 .max_positions = 4096,
                 .epsilon_key = "norm_epsilon",
                 .epsilon = 1e-5,
                 .activation = "gelu_pytorch_tanh",
                 .tied = true,
                 .gate = LlamaKind::Gate::kNo,
                 .norm_bias = LlamaKind::NormBias::kYes,
                 .read_rest = read_starcoder2_rest};
  VKF_ASSIGN(const bool biased, files.config.get_bool_or("use_bias", true));
  kind.biases = {.qkv = biased, .out = biased, .ffn = biased};
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
