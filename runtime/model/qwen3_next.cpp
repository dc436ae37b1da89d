// Qwen3-Next and the text model of Qwen3.5 (Yang et al., 2025 and 2026). They have gated delta
// networks in three of four layers, gated attention in the others. Qwen3-Next has experts.
#include "base/message.h"
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/llama.h"
#include "model/state_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

Status read_delta(const JsonConfig& config, StackConfig& stack) {
  StateSetup& s = stack.states;
  s.kind = StateSetup::Kind::kDelta;
  VKF_ASSIGN(s.heads, get_size_or(config, "linear_num_value_heads", 32, kMostWidth));
  VKF_ASSIGN(s.key_heads, get_size_or(config, "linear_num_key_heads", 16, kMostWidth));
  VKF_ASSIGN(s.width, get_size_or(config, "linear_key_head_dim", 128, kMostStateWidth));
  VKF_ASSIGN(s.value_width, get_size_or(config, "linear_value_head_dim", 128, kMostWidth));
  VKF_ASSIGN(s.taps, get_size_or(config, "linear_conv_kernel_dim", 4, kMostConvTaps));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "silu"));
  s.gate = GatedNormAttrs::Order::kNormFirst;
  s.norm_groups = s.heads;
  s.norm_epsilon = stack.epsilon;
  if (s.heads % s.key_heads != 0) {
    return invalid_file(message({"[linear_num_key_heads] in ", config.where(), " is ", s.key_heads,
                                 ", but must divide the ", s.heads, " heads of values"}));
  }
  VKF_ASSIGN(const int64_t interval,
             get_size_or(config, "full_attention_interval", 4, kMostLayers));
  return read_state_layers(
      config, "linear_attention", "full_attention",
      [&](int64_t i) { return (i + 1) % interval != 0; }, stack);
}

Status read_gated(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  stack.output_gate = StackConfig::OutputGate::kYes;
  return read_delta(config, stack);
}

Status read_qwen3_next_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_gated(config, block));
  ExpertSetup& experts = stack.experts;
  VKF_CHECK(
      read_expert_counts(config, {.experts = 512, .choices = 10, .key = "num_experts"}, experts));
  VKF_ASSIGN(experts.ffn, get_size_or(config, "moe_intermediate_size", 512, kMostWidth));
  VKF_ASSIGN(experts.shared_ffn,
             get_size_or(config, "shared_expert_intermediate_size", 512, kMostWidth));
  experts.shared_gated = true;
  VKF_CHECK(read_normalize(config, true, experts));
  return read_sparse_layers(config, stack.layers, experts);
}

// What both have beside the projection; gains of heads are the same ones.
void add_delta_rows(const StackConfig& stack, const std::string& to, const std::string& from,
                    WeightTable& table) {
  const StateSetup& s = stack.states;
  table.rows.push_back(taps_row(stack, to, from + "conv1d"));
  table.rows.push_back(
      table_row(to + ".mix.rates", {from + "A_log", from + "dt_bias"}, {1, 1}, s.heads));
  const auto heads = static_cast<size_t>(s.heads);
  table.rows.push_back(table_row(to + ".mix.norm",
                                 std::vector<std::string>(heads, from + "norm.weight"),
                                 std::vector<int64_t>(heads, 1), s.value_width));
  table.rows.push_back(
      plain_linear_row(to + ".mix.out", {from + "out_proj"}, stack.width, s.values()));
}

// Our columns out of files that have them by head of keys: [q | k | v of its heads | gates of
// those], then [strengths | rates].
std::vector<uint32_t> by_key_head(const StateSetup& s) {
  const int64_t each = s.heads / s.key_heads, values = each * s.value_width;
  const int64_t group = 2 * s.width + 2 * values, rest = s.key_heads * group;
  std::vector<uint32_t> order;
  const auto take = [&](int64_t base, int64_t stride, int64_t first, int64_t count) {
    for (int64_t g = 0; g < s.key_heads; ++g) {
      for (int64_t i = 0; i < count; ++i) {
        order.push_back(static_cast<uint32_t>(base + g * stride + first + i));
      }
    }
  };
  take(0, group, 0, s.width);
  take(0, group, s.width, s.width);
  take(0, group, 2 * s.width, values);
  take(0, group, 2 * s.width + values, values);
  take(rest, 2 * each, 0, each);
  take(rest, 2 * each, each, each);
  return order;
}

void add_qwen3_next_states(const StackConfig& stack, const std::string& to,
                           const std::string& layer, WeightTable& table) {
  const StateSetup& s = stack.states;
  const std::string from = layer + "linear_attn.";
  WeightRow in = plain_linear_row(to + ".mix.in", {from + "in_proj_qkvz", from + "in_proj_ba"},
                                  state_columns(s, stack.width).width, stack.width);
  in.source_rows = {2 * s.keys() + 2 * s.values(), 2 * s.heads};
  in.row_order = by_key_head(s);
  table.rows.push_back(std::move(in));
  add_delta_rows(stack, to, from, table);
}

void add_qwen3_5_states(const StackConfig& stack, const std::string& to, const std::string& layer,
                        WeightTable& table) {
  const StateSetup& s = stack.states;
  const std::string from = layer + "linear_attn.";
  WeightRow in = plain_linear_row(
      to + ".mix.in",
      {from + "in_proj_qkv", from + "in_proj_z", from + "in_proj_b", from + "in_proj_a"},
      state_columns(s, stack.width).width, stack.width);
  in.source_rows = {2 * s.keys() + s.values(), s.values(), s.heads, s.heads};
  table.rows.push_back(std::move(in));
  add_delta_rows(stack, to, from, table);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_qwen3_next(const ModelFiles& files) {
  LlamaKind kind{.family = "qwen3_next",
                 .architecture = "Qwen3NextForCausalLM",
                 .vocabulary = 151936,
                 .width = 2048,
                 .layers = 48,
                 .heads = 16,
                 .kv_heads = 2,
                 .head_width = 256,
                 .ffn = 5632,
                 .max_positions = 32768,
                 .gain_offset = 1.0f,
                 .partial_rotary = 0.25,
                 .add_states = add_qwen3_next_states,
                 .ignored = {"mtp.*"},
                 .read_rest = read_qwen3_next_rest};
  kind.experts.shared_up = {"shared_expert.gate_proj", "shared_expert.up_proj"};
  kind.experts.shared_down = "shared_expert.down_proj";
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

Result<std::unique_ptr<ModelFamily>> load_qwen3_5_text(const ModelFiles& files) {
  LlamaKind kind{.family = "qwen3_5_text",
                 .architecture = "Qwen3_5ForCausalLM",
                 .vocabulary = 248320,
                 .heads = 16,
                 .kv_heads = 4,
                 .head_width = 256,
                 .ffn = 12288,
                 .max_positions = 32768,
                 .gain_offset = 1.0f,
                 .partial_rotary = 0.25,
                 .add_states = add_qwen3_5_states,
                 .ignored = {"mtp.*"},
                 .read_rest = read_gated};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
