// LFM2 (Liquid AI, 2025): LLaMA's layers with norms of queries and keys, most of them with a gated
// short convolution in the place of attention.
#include <algorithm>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"
#include "model/state_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// The width of the feed-forward layer: block_ff_dim or intermediate_size, of which two thirds
// count, stretched and rounded up, where block_auto_adjust_ff_dim says so.
Status read_lfm2_ffn(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(stack.ffn, get_size_or(config, "block_ff_dim", stack.ffn, kMostWidth));
  VKF_ASSIGN(const bool adjusts, config.get_bool_or("block_auto_adjust_ff_dim", true));
  if (!adjusts) return {};
  VKF_ASSIGN(const int64_t multiple, get_size_or(config, "block_multiple_of", 256, kMostWidth));
  VKF_ASSIGN(const double factor, config.get_double_or("block_ffn_dim_multiplier", 1.0));
  if (!(factor > 0) || !(factor < 1024)) {
    return invalid_file(message({"[block_ffn_dim_multiplier] in ", config.where(), " is ", factor,
                                 ", but must be above 0 and below 1024"}));
  }
  const int64_t thirds = 2 * stack.ffn / 3;
  const auto stretched = static_cast<int64_t>(factor * static_cast<double>(thirds));
  stack.ffn = std::max<int64_t>(1, (stretched + multiple - 1) / multiple) * multiple;
  return {};
}

Status read_lfm2_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  VKF_CHECK(read_lfm2_ffn(config, stack));
  StateSetup& s = stack.states;
  s.kind = StateSetup::Kind::kShortConv;
  s.activation = ActivationKind::kNone;
  VKF_ASSIGN(s.taps, get_size_or(config, "conv_L_cache", 3, kMostConvTaps));
  VKF_ASSIGN(s.bias, config.get_bool_or("conv_bias", false));
  s.in_bias = s.out_bias = s.bias;
  VKF_ASSIGN(const std::vector<int64_t> full, config.get_int_list_or("full_attn_idxs", {}));
  const bool all = !config.has("full_attn_idxs");
  return read_state_layers(
      config, "conv", "full_attention",
      [&](int64_t i) { return !all && std::find(full.begin(), full.end(), i) == full.end(); },
      stack);
}

void add_lfm2_conv(const StackConfig& stack, const std::string& to, const std::string& layer,
                   WeightTable& table) {
  const StateSetup& s = stack.states;
  const std::string from = layer + "conv.";
  const auto make = s.bias ? linear_row : plain_linear_row;
  table.rows.push_back(make(to + ".mix.in", {from + "in_proj"}, 3 * stack.width, stack.width));
  table.rows.push_back(taps_row(stack, to, from + "conv"));
  table.rows.push_back(make(to + ".mix.out", {from + "out_proj"}, stack.width, stack.width));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_lfm2(const ModelFiles& files) {
  return load_llama_kind(files, {.family = "lfm2",
                                 .architecture = "Lfm2ForCausalLM",
                                 .names = {.norm = "operator_norm",
                                           .ffn_norm = "ffn_norm",
                                           .out = "out_proj",
                                           .q_norm = "q_layernorm",
                                           .k_norm = "k_layernorm",
                                           .ffn = "feed_forward",
                                           .gate_up = {"w1", "w3"},
                                           .down = "w2",
                                           .final_norm = "embedding_norm"},
                                 .vocabulary = 65536,
                                 .width = 2560,
                                 .kv_heads = 8,
                                 .ffn = 12288,
                                 .max_positions = 128000,
                                 .epsilon_key = "norm_eps",
                                 .epsilon = 1e-5,
                                 .rotary = {.theta = 1e6},
                                 .tied = true,
                                 .add_states = add_lfm2_conv,
                                 .read_rest = read_lfm2_rest});
}

}  // namespace vkformer
