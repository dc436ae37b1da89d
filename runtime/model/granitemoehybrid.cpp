// Granite 4 (IBM, 2025). It is Granite's layers, most of them with a selective state in the place
// of attention. Experts are beside a feed-forward layer that every row takes.
#include "model/config_reading.h"
#include "model/expert_reading.h"
#include "model/family_list.h"
#include "model/granite.h"
#include "model/state_reading.h"

namespace vkformer {
namespace {

// Whether the layers have experts; 0 of them is none.
Status read_hybrid_experts(const JsonConfig& config, StackConfig& stack) {
  VKF_ASSIGN(const int64_t shared,
             get_size_or(config, "shared_intermediate_size", 1024, kMostWidth));
  VKF_ASSIGN(const int64_t count, config.get_int_or("num_local_experts", 8));
  ExpertSetup& experts = stack.experts;
  if (count == 0) {
    stack.ffn = shared;
    return {};
  }
  VKF_CHECK(read_expert_counts(config, {.experts = 8, .choices = 2}, experts));
  experts.route.normalize = true;
  experts.ffn = stack.ffn;
  experts.shared_ffn = shared;
  experts.layers.assign(static_cast<size_t>(stack.layers), 1);
  return {};
}

Status read_hybrid_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_granite_multipliers(config, block));
  VKF_CHECK(read_hybrid_experts(config, stack));
  VKF_ASSIGN(const std::string positions, config.get_string_or("position_embedding_type", ""));
  if (positions != "rope") stack.kinds = {AttentionKind{}};
  VKF_ASSIGN(const int64_t expand, get_size_or(config, "mamba_expand", 2, 64));
  VKF_CHECK(read_mamba(config, {}, {.head_width = 0}, expand * stack.width, stack));
  return read_state_layers(
      config, "mamba", "attention", [](int64_t) { return true; }, stack);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_granitemoehybrid(const ModelFiles& files) {
  LlamaKind kind{
      .family = "granitemoehybrid",
      .architecture = "GraniteMoeHybridForCausalLM",
      .names = {.ffn = "shared_mlp", .gate_up = {"input_linear"}, .down = "output_linear"},
      .add_states = add_mamba_layer,
      .read_rest = read_hybrid_rest};
  kind.experts.prefixes = {"block_sparse_moe."};
  kind.experts.router = "router.layer";
  kind.experts.all_up = "input_linear.weight";
  kind.experts.all_down = "output_linear.weight";
  kind.experts.shared_module = "shared_mlp.";
  kind.experts.shared_up = {"input_linear"};
  kind.experts.shared_down = "output_linear";
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
