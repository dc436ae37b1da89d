// DeepSeek-V3 (DeepSeek-AI, 2024): keys and values out of one narrow latent (DeepSeek-V2). In
// layers of experts, rows choose some by sigmoids within groups, and every row takes one shared
// expert.
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

// With YaRN scores are scaled as cosines and sines would be by mscale_all_dim, squared.
double score_factor(const RotaryScaling& scaling) {
  if (scaling.kind != RotaryScalingKind::kYarn || scaling.mscale_all_dim == 0.0) return 1.0;
  const double factor = scaling.factor.value_or(1.0);
  const double m = factor <= 1.0 ? 1.0 : 0.1 * scaling.mscale_all_dim * std::log(factor) + 1.0;
  return m * m;
}

Status read_heads(const JsonConfig& config, StackConfig& stack) {
  LatentSetup& latent = stack.latent;
  VKF_ASSIGN(latent.query_rank, get_size_or(config, "q_lora_rank", 1536, kMostWidth));
  VKF_ASSIGN(latent.rank, get_size_or(config, "kv_lora_rank", 512, kMostWidth));
  VKF_ASSIGN(latent.rotary, get_size_or(config, "qk_rope_head_dim", 64, kMostHeadWidth));
  VKF_ASSIGN(const int64_t own, get_size_or(config, "qk_nope_head_dim", 128, kMostHeadWidth));
  VKF_ASSIGN(stack.value_width, get_size_or(config, "v_head_dim", 128, kMostHeadWidth));
  if (latent.rotary % 2 != 0) {
    return invalid_file(message(
        {"[qk_rope_head_dim] in ", config.where(), " is ", latent.rotary, ", but must be even"}));
  }
  stack.head_width = own + latent.rotary;
  stack.kv_heads = stack.heads;
  if (stack.head_width <= kMostHeadWidth) return {};
  return unsupported(message({"[qk_nope_head_dim] and [qk_rope_head_dim] in ", config.where(),
                              " are ", own, " and ", latent.rotary, ", together above the ",
                              kMostHeadWidth, " columns that a head may have"}));
}

Status read_deepseek_positions(const JsonConfig& config, const LlamaKind& kind,
                               int64_t max_positions, StackConfig& stack) {
  VKF_CHECK(read_heads(config, stack));
  RotaryDefaults defaults = kind.rotary;
  defaults.max_positions = max_positions;
  RotarySetup setup;
  VKF_ASSIGN(setup.scaling, read_model_rotary(config, defaults));
  setup.width = static_cast<uint32_t>(stack.latent.rotary);
  VKF_ASSIGN(const bool interleaved, config.get_bool_or("rope_interleave", true));
  if (interleaved) setup.pairs = RotaryPairs::kInterleaved;
  VKF_CHECK(check_rotary_scaling(setup.scaling, setup.width, config.where()));
  stack.rotaries = {setup};
  stack.kinds = {AttentionKind{.rotary = 0}};
  const double plain = 1.0 / std::sqrt(static_cast<double>(stack.head_width));
  stack.scales = {static_cast<float>(plain * score_factor(setup.scaling))};
  return {};
}

Status read_groups(const JsonConfig& config, ExpertRouteAttrs& route) {
  VKF_ASSIGN(const int64_t groups, get_size_or(config, "n_group", 8, kMostWidth));
  VKF_ASSIGN(const int64_t kept, get_size_or(config, "topk_group", 4, kMostWidth));
  route.groups = static_cast<uint32_t>(groups);
  route.kept_groups = static_cast<uint32_t>(kept);
  const int64_t experts = route.experts;
  if (experts % groups != 0 || experts / groups < 2) {
    return invalid_file(message({"[n_group] in ", config.where(), " is ", groups, ", but the ",
                                 experts, " experts must divide into groups of 2 or more"}));
  }
  if (kept > groups || route.choices > experts / groups * kept) {
    return invalid_file(
        message({"[topk_group] in ", config.where(), " is ", kept, " of ", groups, " groups of ",
                 experts / groups, " experts, of which ", route.choices, " cannot be chosen"}));
  }
  return {};
}

Status read_deepseek_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  ExpertSetup& experts = stack.experts;
  VKF_CHECK(read_expert_counts(config, {.experts = 256, .choices = 8, .key = "n_routed_experts"},
                               experts));
  VKF_CHECK(read_normalize(config, true, experts));
  experts.route.scores = ExpertRouteAttrs::Scores::kSigmoid;
  experts.route.least_sum = experts.route.normalize ? 1e-20f : 0.0f;
  VKF_ASSIGN(experts.route.scale, read_multiplier(config, "routed_scaling_factor", 2.5));
  VKF_CHECK(read_groups(config, experts.route));
  experts.choice_bias = true;
  VKF_ASSIGN(experts.ffn, get_size_or(config, "moe_intermediate_size", 2048, kMostWidth));
  VKF_ASSIGN(const int64_t shared, get_size_or(config, "n_shared_experts", 1, kMostLayers));
  experts.shared_ffn = shared * experts.ffn;
  VKF_ASSIGN(const int64_t dense, config.get_int_or("first_k_dense_replace", 3));
  for (int64_t i = 0; i < stack.layers; ++i) experts.layers.push_back(i >= dense ? 1 : 0);
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_deepseek_v3(const ModelFiles& files) {
  LlamaKind kind{.family = "deepseek_v3",
                 .architecture = "DeepseekV3ForCausalLM",
                 .vocabulary = 129280,
                 .width = 7168,
                 .layers = 61,
                 .heads = 128,
                 .head_width = 192,
                 .ffn = 18432,
                 .max_positions = 4096,
                 .read_positions = read_deepseek_positions,
                 .read_rest = read_deepseek_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
