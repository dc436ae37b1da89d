// NomicBERT (Nussbaum et al., 2024): BERT with rotary positions, gated feed-forward layers and no
// biases in its layers.
#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

constexpr double kNomicTheta = 1000.0;

BertNames nomic_bert_names(int64_t layers) {
  BertNames names{.prefix = "nomic_bert.", .older_prefix = "bert.", .pooler = "pooler.dense"};
  names.embedding_norm = "emb_ln";
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layers." + std::to_string(i));
  }
  names.layer = {.qkv = "attn.Wqkv",
                 .out = "attn.out_proj",
                 .out_norm = "norm1",
                 .gate = "mlp.fc12",
                 .up = "mlp.fc11",
                 .down = "mlp.fc2",
                 .down_norm = "norm2"};
  names.qkv_bias = names.out_bias = names.ffn_bias = BertNames::Bias::kNo;
  names.decoder = "cls.predictions.decoder";
  names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
  names.ignored = {"cls.*", "classifier.*"};
  return names;
}

// Configurations from before the library knew the family spell keys as GPT-2 does, and have
// switches that no published model of this layout sets.
bool has_older_keys(const JsonConfig& config) {
  return config.has("n_embd") && !config.has("hidden_size");
}

Status refuse_older_switches(const JsonConfig& config) {
  struct Switch {
    const char* key;
    bool fallback;  // of that class
  };
  constexpr Switch kFalse[] = {{"prenorm", false},      {"parallel_block", false},
                               {"causal", false},       {"use_rms_norm", false},
                               {"qkv_proj_bias", true}, {"mlp_fc1_bias", true},
                               {"mlp_fc2_bias", true},  {"rotary_emb_interleaved", false}};
  for (const Switch& s : kFalse) {
    VKF_ASSIGN(bool set, config.get_bool_or(s.key, s.fallback));
    if (set) {
      return unsupported(message({"[", s.key, "] is true in ", config.where(),
                                  "; only false is supported for this family"}));
    }
  }
  VKF_ASSIGN(double part, config.get_double_or("rotary_emb_fraction", 0.0));
  if (part != 1.0) {
    return unsupported(message({"[rotary_emb_fraction] is ", part, " in ", config.where(),
                                "; only 1 is supported, rotary positions of whole heads"}));
  }
  for (const char* key : {"rotary_scaling_factor", "rotary_emb_scale_base"}) {
    if (!config.has(key)) continue;
    return unsupported(message({"[", key, "] is set in ", config.where(),
                                "; only null is supported, rotary positions without scaling"}));
  }
  return {};
}

Status refuse_experts(const JsonConfig& config) {
  for (const char* key : {"num_experts", "moe_every_n_layers"}) {
    VKF_ASSIGN(int64_t count, config.get_int_or(key, 0));
    if (count > 0) {
      return unsupported(message({"[", key, "] is ", count, " in ", config.where(),
                                  "; layers with experts are not implemented for this family"}));
    }
  }
  return {};
}

// "swiglu" is a gate with silu, "geglu" one with gelu.
Result<const char*> older_activation(const JsonConfig& config) {
  VKF_ASSIGN(std::string name, config.get_string_or("activation_function", "gelu"));
  if (name == "swiglu") return "silu";
  if (name == "geglu") return "gelu";
  return unsupported(message({"[activation_function] is '", name, "' in ", config.where(),
                              "; supported are swiglu and geglu"}));
}

Result<BertDefaults> nomic_bert_keys(const JsonConfig& config) {
  BertDefaults keys{.vocab = 30528,
                    .positions = 2048,
                    .activation = "silu",
                    .position_type = "rotary",
                    .head_width_key = "head_dim"};
  if (!has_older_keys(config)) return keys;
  VKF_CHECK(refuse_older_switches(config));
  VKF_ASSIGN(keys.activation, older_activation(config));
  keys.positions_key = "n_positions";
  keys.epsilon_key = "layer_norm_epsilon";
  keys.epsilon = 1e-5;
  keys.width_key = "n_embd";
  keys.layers_key = "n_layer";
  keys.heads_key = "n_head";
  keys.ffn_key = "n_inner";
  return keys;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_nomic_bert(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_CHECK(refuse_experts(config));
  VKF_ASSIGN(BertDefaults keys, nomic_bert_keys(config));
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, keys, "NomicBertModel"));
  double theta = kNomicTheta;
  if (has_older_keys(config)) {
    VKF_ASSIGN(theta, config.get_double_or("rotary_emb_base", 10000.0));
  }
  VKF_CHECK(read_rotary_positions(config, theta, bert));
  bert.block.stack.gate = StackConfig::Gate::kYes;
  bert.names = nomic_bert_names(bert.block.stack.layers);
  const std::string head = "cls.predictions.transform.";
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, head + "dense", bert.block.stack.activation, head + "layer_norm");
      break;
    case HeadKind::kSequence:
      add_pooled_head(bert, "classifier");
      break;
    case HeadKind::kSpans:
      return unsupported(
          message({"[architectures] of ", config.where(), " names '", bert.facts.architecture,
                   "', but this family has no head for ", "question answering"}));
    default:
      add_shared_head(bert);
  }
  return make_bert(std::move(bert));
}

}  // namespace vkformer
