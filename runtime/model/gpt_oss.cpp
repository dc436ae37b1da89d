// GPT-OSS (OpenAI, 2025, "gpt-oss-120b & gpt-oss-20b model card"). It is LLaMA's layers with
// experts, a learned score of each head in its softmax, windows on every other layer and biases
// everywhere.
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

// The library's rope_parameters where a configuration has none.
RotaryScaling default_scaling(int64_t max_positions, double theta) {
  return {.kind = RotaryScalingKind::kYarn,
          .theta = theta,
          .factor = 32.0,
          .max_positions = max_positions,
          .original_positions = 4096,
          .truncate = false};
}

Status read_gpt_oss_positions(const JsonConfig& config, const LlamaKind& kind,
                              int64_t max_positions, StackConfig& stack) {
  RotaryDefaults defaults = kind.rotary;
  defaults.max_positions = max_positions;
  RotarySetup setup;
  if (rotary_scope(config).keys().empty()) {
    VKF_ASSIGN(const double theta, config.get_double_or("rope_theta", defaults.theta));
    setup.scaling = default_scaling(max_positions, theta);
  } else {
    VKF_ASSIGN(setup.scaling, read_model_rotary(config, defaults));
  }
  setup.width = static_cast<uint32_t>(stack.head());
  VKF_CHECK(check_rotary_scaling(setup.scaling, setup.width, config.where()));
  stack.rotaries = {setup};
  stack.kinds = {AttentionKind{.rotary = 0}};
  VKF_CHECK(read_layer_types(config, stack, [](int64_t i) { return i % 2 == 0; }));
  VKF_ASSIGN(const int64_t window, get_size_or(config, "sliding_window", 128, INT32_MAX));
  add_llama_window(stack, window);
  return {};
}

Status read_gpt_oss_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_expert_counts(config, {.experts = 128, .choices = 4}, stack.experts));
  stack.experts.ffn = stack.ffn;
  stack.experts.layers.assign(static_cast<size_t>(stack.layers), 1);
  // hidden_act names no other: gates are x sigmoid(1.702 x).
  stack.activation = ActivationKind::kQuickGelu;
  VKF_ASSIGN(const double limit, config.get_double_or("swiglu_limit", 7.0));
  stack.experts.gate_limit = static_cast<float>(limit);
  if (stack.experts.gate_limit > 0 && std::isfinite(stack.experts.gate_limit)) return {};
  return invalid_file(message(
      {"[swiglu_limit] in ", config.where(), " is ", limit, ", but must be above 0 and finite"}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gpt_oss(const ModelFiles& files) {
  LlamaKind kind{.family = "gpt_oss",
                 .architecture = "GptOssForCausalLM",
                 .vocabulary = 201088,
                 .width = 2880,
                 .layers = 36,
                 .heads = 64,
                 .kv_heads = 8,
                 .head_width = 64,
                 .ffn = 2880,
                 .max_positions = 131072,
                 .epsilon = 1e-5,
                 .rotary = {.theta = 150000.0},
                 .sinks = "self_attn.sinks",
                 .experts = {.router = "router",
                             .router_bias = true,
                             .axes = WeightRow::Axes::kInOut,
                             .turns = ExpertNames::Turns::kYes},
                 .read_positions = read_gpt_oss_positions,
                 .read_rest = read_gpt_oss_rest};
  VKF_ASSIGN(kind.biases.qkv, files.config.get_bool_or("attention_bias", true));
  kind.biases.out = kind.biases.qkv;
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
