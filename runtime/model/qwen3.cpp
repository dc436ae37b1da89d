// Qwen3 (Yang et al., 2025): LLaMA's layers with a norm of every head of queries and keys.
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"
#include "model/text_decoder.h"

namespace vkformer {
namespace {

Status read_qwen3_rest(const JsonConfig& config, DecoderConfig& block) {
  block.stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  return read_qwen2_windows(config, block);
}

}  // namespace

Result<LlamaKind> qwen3_kind(const JsonConfig& config) {
  LlamaKind kind{.family = "qwen3",
                 .architecture = "Qwen3ForCausalLM",
                 .vocabulary = 151936,
                 .kv_heads = 32,
                 .head_width = 128,
                 .ffn = 22016,
                 .max_positions = 32768,
                 .read_rest = read_qwen3_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(config));
  return kind;
}

Result<std::unique_ptr<ModelFamily>> load_qwen3(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, qwen3_kind(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
