// Mixtral (Jiang et al., 2024, "Mixtral of experts"): Mistral's layers with experts in the place of
// the feed-forward layer, two of which every token takes.
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_mixtral_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_one_window(config, block));
  VKF_CHECK(read_expert_counts(config, {.experts = 8, .choices = 2}, stack.experts));
  stack.experts.ffn = stack.ffn;
  stack.experts.layers.assign(static_cast<size_t>(stack.layers), 1);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_mixtral(const ModelFiles& files) {
  return load_llama_kind(
      files,
      {.family = "mixtral",
       .architecture = "MixtralForCausalLM",
       .kv_heads = 8,
       .ffn = 14336,
       .max_positions = 4096 * 32,
       .epsilon = 1e-5,
       .rotary = {.theta = 1e6},
       .experts = {.prefixes = {"block_sparse_moe.", "mlp."}, .up = {"w1", "w3"}, .down = "w2"},
       .read_rest = read_mixtral_rest});
}

}  // namespace vkformer
