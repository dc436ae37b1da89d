// SmolLM3 (Hugging Face, 2025): LLaMA's layers, some of them without positions, which may slide.
#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

// Whether each layer turns its queries and keys: 1 in no_rope_layers means that it does.
Result<std::vector<int64_t>> read_turning_layers(const JsonConfig& config, int64_t layers) {
  VKF_ASSIGN(const int64_t interval, get_size_or(config, "no_rope_layer_interval", 4, kMostLayers));
  std::vector<int64_t> counted;
  for (int64_t i = 0; i < layers; ++i) counted.push_back((i + 1) % interval != 0 ? 1 : 0);
  if (!config.has("no_rope_layers")) return counted;
  VKF_ASSIGN(std::vector<int64_t> given, config.get_int_list_or("no_rope_layers", {}));
  if (static_cast<int64_t>(given.size()) < layers) {
    return invalid_file(message({"[no_rope_layers] in ", config.where(), " has ", given.size(),
                                 " entries for ", layers, " layers; they must be as many"}));
  }
  return given;
}

Status read_smollm3_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_ASSIGN(const std::vector<int64_t> turning, read_turning_layers(config, stack.layers));
  VKF_ASSIGN(const bool uses, config.get_bool_or("use_sliding_window", false));
  const bool slides = uses && config.has("sliding_window");
  VKF_CHECK(read_layer_types(
      config, stack, [&](int64_t i) { return slides && turning[static_cast<size_t>(i)] == 0; }));
  stack.kinds = {AttentionKind{.rotary = 0}, AttentionKind{.rotary = -1}};
  if (config.has("sliding_window")) {
    VKF_ASSIGN(const int64_t window, get_size(config, "sliding_window", INT32_MAX));
    add_llama_window(stack, window, 0);
    add_llama_window(stack, window, -1);
  }
  for (size_t i = 0; i < stack.kind_of.size(); ++i) {
    const bool sliding = stack.kind_of[i] != 0;
    if (sliding && stack.kinds.size() == 2) {
      return invalid_file(message({"[layer_types] in ", config.where(),
                                   " has sliding_attention, but sliding_window is missing; set "
                                   "it"}));
    }
    stack.kind_of[i] = static_cast<uint8_t>((sliding ? 2 : 0) + (turning[i] == 0 ? 1 : 0));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_smollm3(const ModelFiles& files) {
  LlamaKind kind{.family = "smollm3",
                 .architecture = "SmolLM3ForCausalLM",
                 .vocabulary = 128256,
                 .width = 2048,
                 .layers = 36,
                 .heads = 16,
                 .kv_heads = 4,
                 .max_positions = 32768,
                 .rotary = {.theta = 2000000.0},
                 .tied = true,
                 .read_rest = read_smollm3_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  VKF_ASSIGN(kind.biases.ffn, files.config.get_bool_or("mlp_bias", false));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
