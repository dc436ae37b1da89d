// Qwen3 with experts (Yang et al., 2025): Qwen3's layers, most of them with experts in the place of
// the feed-forward layer.
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

// use_sliding_window says whether every layer slides.
Status read_windows(const JsonConfig& config, DecoderConfig& block) {
  VKF_ASSIGN(const bool slides, config.get_bool_or("use_sliding_window", false));
  return slides ? read_one_window(config, block) : Status{};
}

Status read_qwen3_moe_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  VKF_CHECK(read_windows(config, block));
  VKF_CHECK(read_expert_counts(config, {.experts = 128, .choices = 8, .key = "num_experts"},
                               stack.experts));
  VKF_ASSIGN(stack.experts.ffn, get_size_or(config, "moe_intermediate_size", 768, kMostWidth));
  VKF_CHECK(read_normalize(config, false, stack.experts));
  return read_sparse_layers(config, stack.layers, stack.experts);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_qwen3_moe(const ModelFiles& files) {
  LlamaKind kind{.family = "qwen3_moe",
                 .architecture = "Qwen3MoeForCausalLM",
                 .vocabulary = 151936,
                 .width = 2048,
                 .layers = 24,
                 .kv_heads = 4,
                 .ffn = 6144,
                 .max_positions = 32768,
                 .read_rest = read_qwen3_moe_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
