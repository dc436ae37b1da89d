// OLMoE (Muennighoff et al., 2024, "OLMoE: Open mixture-of-experts language models"). It has
// LLaMA's layers with norms of whole queries and keys, and experts in the place of the feed-forward
// layer.
#include "base/message.h"
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_olmoe_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.qk_norm = StackConfig::QueryKeyNorm::kWhole;
  if (config.has("clip_qkv")) {
    VKF_ASSIGN(const double clip, config.get_double("clip_qkv"));
    return unsupported(message({"[clip_qkv] in ", config.where(), " is ", clip,
                                "; this family runs without clipped projections (null)"}));
  }
  VKF_CHECK(read_expert_counts(config, {.experts = 64, .choices = 8, .key = "num_experts"},
                               stack.experts));
  VKF_CHECK(read_normalize(config, false, stack.experts));
  stack.experts.ffn = stack.ffn;
  stack.experts.layers.assign(static_cast<size_t>(stack.layers), 1);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_olmoe(const ModelFiles& files) {
  LlamaKind kind{.family = "olmoe",
                 .architecture = "OlmoeForCausalLM",
                 .vocabulary = 50304,
                 .width = 2048,
                 .layers = 16,
                 .heads = 16,
                 .ffn = 2048,
                 .max_positions = 4096,
                 .epsilon = 1e-5,
                 .read_rest = read_olmoe_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
