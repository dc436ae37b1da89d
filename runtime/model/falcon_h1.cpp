// Falcon-H1 (TII, 2025): layers that add attention and a selective state of the same input, with
// multipliers of nearly every product. They are folded into the weights.
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"
#include "model/state_reading.h"

namespace vkformer {
namespace {

struct Multipliers {
  float attention_in = 1, attention_out = 1, key = 1, state_in = 1, state_out = 1;
  float gate = 1, down = 1;
  std::vector<float> state;  // of gate, values, keys, queries and rates
};

Result<std::vector<float>> read_multipliers(const JsonConfig& config, const std::string& key,
                                            size_t count) {
  VKF_ASSIGN(const std::vector<double> given,
             config.get_double_list_or(key, std::vector<double>(count, 1.0)));
  if (given.size() != count) {
    return invalid_file(message({"[", key, "] in ", config.where(), " has ", given.size(),
                                 " numbers; it must have ", count}));
  }
  return std::vector<float>(given.begin(), given.end());
}

Result<Multipliers> read_all_multipliers(const JsonConfig& config) {
  Multipliers m;
  VKF_ASSIGN(m.attention_in, read_multiplier(config, "attention_in_multiplier", 1.0));
  VKF_ASSIGN(m.attention_out, read_multiplier(config, "attention_out_multiplier", 1.0));
  VKF_ASSIGN(m.key, read_multiplier(config, "key_multiplier", 1.0));
  VKF_ASSIGN(m.state_in, read_multiplier(config, "ssm_in_multiplier", 1.0));
  VKF_ASSIGN(m.state_out, read_multiplier(config, "ssm_out_multiplier", 1.0));
  VKF_ASSIGN(const std::vector<float> ffn, read_multipliers(config, "mlp_multipliers", 2));
  m.gate = ffn[0];
  m.down = ffn[1];
  VKF_ASSIGN(m.state, read_multipliers(config, "ssm_multipliers", 5));
  return m;
}

void fill(std::vector<float>& to, int64_t count, float value) {
  to.insert(to.end(), static_cast<size_t>(count), value);
}

// Multipliers of inputs leave biases as they are, unlike those of outputs.
void scale_row(const Multipliers& m, int64_t queries, int64_t keys, const StateSetup& s,
               WeightRow& row) {
  std::vector<float>& scales = row.row_scales;
  if (row.name.ends_with(".self.qkv")) {
    fill(scales, queries, m.attention_in);
    fill(scales, keys, m.attention_in * m.key);
    fill(scales, keys, m.attention_in);
    row.bias_scale /= m.attention_in;
  } else if (row.name.ends_with(".self.out")) {
    fill(scales, row.rows, m.attention_out);
  } else if (row.name.ends_with(".mix.in")) {
    const int64_t widths[] = {s.values(), s.values(), s.keys(), s.keys(), s.heads};
    for (size_t i = 0; i < m.state.size(); ++i) fill(scales, widths[i], m.state_in * m.state[i]);
    row.bias_scale /= m.state_in;
  } else if (row.name.ends_with(".mix.out")) {
    fill(scales, row.rows, m.state_out);
  } else if (row.name.ends_with(".ffn.up")) {
    // Pairs of a row of the gate projection and one of the up projection.
    for (int64_t i = 0; i < row.rows; ++i) scales.push_back(i % 2 == 0 ? m.gate : 1.0f);
  } else if (row.name.ends_with(".ffn.down")) {
    fill(scales, row.rows, m.down);
  }
}

Status read_falcon_h1_rest(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_ASSIGN(block.embedding.scale, read_multiplier(config, "embedding_multiplier", 1.0));
  VKF_ASSIGN(block.head_scale, read_multiplier(config, "lm_head_multiplier", 1.0));
  VKF_ASSIGN(const int64_t expand, get_size_or(config, "mamba_expand", 2, 64));
  // Missing is 1024, but null is the expanded width.
  VKF_ASSIGN(const int64_t inner,
             get_size_or(config, "mamba_d_ssm", expand * stack.width, kMostWidth));
  VKF_CHECK(read_mamba(config, {}, {.head_width = 0}, inner, stack));
  StateSetup& s = stack.states;
  s.attends = StateSetup::Attends::kYes;
  s.layers.assign(static_cast<size_t>(stack.layers), 1);
  VKF_ASSIGN(s.out_bias, config.get_bool_or("projectors_bias", false));
  VKF_ASSIGN(const bool normed, config.get_bool_or("mamba_rms_norm", false));
  VKF_ASSIGN(const bool first, config.get_bool_or("mamba_norm_before_gate", true));
  s.gate = GatedNormAttrs::Order::kGateOnly;
  if (!normed) return {};
  s.gate = first ? GatedNormAttrs::Order::kNormFirst : GatedNormAttrs::Order::kGateFirst;
  s.norm_groups = s.key_heads;
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_falcon_h1(const ModelFiles& files) {
  LlamaKind kind{.family = "falcon_h1",
                 .architecture = "FalconH1ForCausalLM",
                 .names = {.ffn_norm = "pre_ff_layernorm",
                           .ffn = "feed_forward",
                           .final_norm = "final_layernorm"},
                 .vocabulary = 128000,
                 .kv_heads = 8,
                 .ffn = 14336,
                 .max_positions = 8192,
                 .epsilon = 1e-5,
                 .add_states = add_mamba_layer,
                 .read_rest = read_falcon_h1_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  VKF_ASSIGN(kind.biases.ffn, files.config.get_bool_or("mlp_bias", false));
  VKF_ASSIGN(const Multipliers multipliers, read_all_multipliers(files.config));
  VKF_ASSIGN(LlamaParts parts,
             read_llama_kind(files.config, files.config, kind, nullptr, files.sentence));
  const StackConfig& s = parts.block.stack;
  parts.kind.adjust_row = [multipliers, queries = s.heads * s.head(), keys = s.kv() * s.head(),
                           states = s.states](WeightRow& row) {
    scale_row(multipliers, queries, keys, states, row);
  };
  VKF_ASSIGN(GenerationFacts tokens, read_generation(files.config, files.generation));
  return make_llama(std::move(parts), std::move(tokens));
}

}  // namespace vkformer
