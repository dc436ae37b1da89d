#include "gguf/gguf_architectures.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "gguf/gguf_names.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

// What the rotary keys say, but for factors in tensors.
Result<Json> rotary_parameters(const GgufMetadata& m, double theta) {
  Json rope;
  VKF_ASSIGN(rope["rope_theta"], m.number_or("rope.freq_base", theta));
  VKF_ASSIGN(const std::string type, m.text_or("rope.scaling.type", "none"));
  VKF_ASSIGN(const double older, m.number_or("rope.scale_linear", 1.0));
  VKF_ASSIGN(const double factor, m.number_or("rope.scaling.factor", older));
  for (const auto& [name, usual] : {std::pair{"rope.scaling.yarn_ext_factor", 1.0},
                                    std::pair{"rope.scaling.yarn_log_multiplier", 0.0}}) {
    VKF_ASSIGN(const double given, m.number_or(name, usual));
    if (given == usual) continue;
    return m.refused(name, message({"as ", given, "; only ", usual, " is supported."}));
  }
  if (type == "none" || type == "longrope") {
    rope["rope_type"] = "default";
    if (!m.has("rope.scale_linear") || factor == 1.0) return rope;
  }
  if (type == "none" || type == "linear") {
    rope["rope_type"] = "linear";
    rope["factor"] = factor;
    return rope;
  }
  if (type != "yarn") {
    return type == "longrope"
               ? Result<Json>(rope)
               : m.refused("rope.scaling.type", "as " + bracketed(type) +
                                                    "; none, linear, yarn and longrope are "
                                                    "supported.");
  }
  rope["rope_type"] = "yarn";
  rope["factor"] = factor;
  VKF_ASSIGN(const int64_t context, m.size("context_length"));
  VKF_ASSIGN(rope["original_max_position_embeddings"],
             m.size_or("rope.scaling.original_context_length", context));
  VKF_ASSIGN(rope["beta_fast"], m.number_or("rope.scaling.yarn_beta_fast", 32.0));
  VKF_ASSIGN(rope["beta_slow"], m.number_or("rope.scaling.yarn_beta_slow", 1.0));
  VKF_ASSIGN(rope["truncate"], m.file().get_bool_or(m.key("rope.scaling.yarn_truncate"),
                                                    m.architecture() != "gpt-oss"));
  if (m.has("rope.scaling.yarn_attn_factor")) {
    VKF_ASSIGN(rope["attention_factor"], m.number_or("rope.scaling.yarn_attn_factor", 1.0));
  }
  return rope;
}

// Divisors of the frequencies in a tensor, as LLaMA 3.1's files have them.
Status add_divisors(const GgufMetadata& m, Json& rope) {
  constexpr const char* kDivisors = "rope_freqs.weight";
  if (m.tensor(kDivisors) == nullptr) return {};
  if (rope["rope_type"] != "default") {
    return m.refused("rope.scaling.type",
                     "beside the tensor [rope_freqs.weight]; one of the two "
                     "ways of scaling is supported.");
  }
  VKF_ASSIGN(rope["frequency_divisors"], m.values(kDivisors));
  return {};
}

Status add_sizes(const GgufMetadata& m, const char* epsilon, const char* epsilon_key,
                 Json& config) {
  VKF_ASSIGN(config["hidden_size"], m.size("embedding_length"));
  VKF_ASSIGN(config["num_hidden_layers"], m.size("block_count"));
  VKF_ASSIGN(config["num_attention_heads"], m.size("attention.head_count"));
  VKF_ASSIGN(config["vocab_size"], m.rows("token_embd.weight"));
  VKF_ASSIGN(config["max_position_embeddings"], m.size("context_length"));
  VKF_ASSIGN(config[epsilon], m.file().get_double(m.key(epsilon_key)));
  return {};
}

// The width of a head, and of what is rotated of it. `layers`: some have no attention, and 0 heads.
Status add_heads(const GgufMetadata& m, bool partial, bool layers, Json& config) {
  const int64_t heads = config["num_attention_heads"], width = config["hidden_size"];
  const char* kv_heads = "attention.head_count_kv";
  if (layers) {
    VKF_ASSIGN(config["num_key_value_heads"], m.size_of_some(kv_heads));
  } else {
    VKF_ASSIGN(config["num_key_value_heads"], m.size_or(kv_heads, heads));
  }
  VKF_ASSIGN(const int64_t head,
             m.size_or("attention.key_length", std::max<int64_t>(1, width / heads)));
  VKF_ASSIGN(const int64_t values, m.size_or("attention.value_length", head));
  if (values != head) {
    return m.refused("attention.value_length",
                     message({"as ", values, " beside keys of ", head, "; they must be as wide."}));
  }
  config["head_dim"] = head;
  VKF_ASSIGN(const int64_t rotated, m.size_or("rope.dimension_count", head));
  if (rotated == head) return {};
  if (!partial || rotated > head) {
    return m.refused("rope.dimension_count", message({"as ", rotated, ", but heads are ", head,
                                                      " wide and rotated as a whole."}));
  }
  config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(head);
  return {};
}

// What decoders differ by.
struct DecoderKeys {
  bool partial = false;  // a part of each head may be rotated
  bool layers = false;   // some layers have no attention
  const char* epsilon = "rms_norm_eps";
  const char* epsilon_key = "attention.layer_norm_rms_epsilon";
};

// What all decoders have.
Result<Json> decoder_config(const GgufMetadata& m, const DecoderKeys& keys = {}) {
  Json config;
  VKF_CHECK(add_sizes(m, keys.epsilon, keys.epsilon_key, config));
  VKF_CHECK(add_heads(m, keys.partial, keys.layers, config));
  VKF_ASSIGN(config["intermediate_size"], m.has("feed_forward_length")
                                              ? m.size("feed_forward_length")
                                              : m.size("expert_feed_forward_length"));
  VKF_ASSIGN(Json rope, rotary_parameters(m, 10000.0));
  VKF_CHECK(add_divisors(m, rope));
  config["rope_parameters"] = std::move(rope);
  config["tie_word_embeddings"] = m.tensor("output.weight") == nullptr;
  return config;
}

// Layers with biases, of the same names in all families of LLaMA's kind.
void add_biases(const GgufMetadata& m, Json& config) {
  config["attention_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  config["mlp_bias"] = m.tensor("blk.0.ffn_up.bias") != nullptr;
}

Result<Json> llama_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  VKF_ASSIGN(const int64_t experts, m.file().get_int_or(m.key("expert_count"), 0));
  if (experts <= 0) return config;
  config["model_type"] = "mixtral";
  config["architectures"] = Json::array({"MixtralForCausalLM"});
  config["num_local_experts"] = experts;
  VKF_ASSIGN(config["num_experts_per_tok"], m.size("expert_used_count"));
  return config;
}

Result<Json> qwen2_config(const GgufMetadata& m) {
  return decoder_config(m);
}

Result<Json> qwen3_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["attention_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

Result<Json> qwen3_moe_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, qwen3_config(m));
  VKF_ASSIGN(config["num_experts"], m.size("expert_count"));
  VKF_ASSIGN(config["num_experts_per_tok"], m.size("expert_used_count"));
  VKF_ASSIGN(config["moe_intermediate_size"], m.size("expert_feed_forward_length"));
  VKF_ASSIGN(config["norm_topk_prob"], m.file().get_bool_or(m.key("expert_weights_norm"), true));
  // Layers without experts.
  Json dense = Json::array();
  for (int64_t i = 0; i < config["num_hidden_layers"].get<int64_t>() && i < (1 << 16); ++i) {
    const std::string router = message({"blk.", i, ".ffn_gate_inp.weight"});
    if (m.tensor(router.c_str()) == nullptr) dense.push_back(i);
  }
  config["mlp_only_layers"] = std::move(dense);
  return config;
}

Result<Json> gpt_oss_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["attention_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  VKF_ASSIGN(config["num_local_experts"], m.size("expert_count"));
  VKF_ASSIGN(config["num_experts_per_tok"], m.size("expert_used_count"));
  VKF_ASSIGN(const int64_t ffn,
             m.size_or("expert_feed_forward_length", config["intermediate_size"].get<int64_t>()));
  config["intermediate_size"] = ffn;
  VKF_ASSIGN(config["sliding_window"], m.size("attention.sliding_window"));
  return config;
}

Result<Json> gemma_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["hidden_activation"] = "gelu_pytorch_tanh";
  return config;
}

// The largest models of both generations scale scores by the width of the model over its heads.
// Files do not say so, but have that number of layers.
double gemma_scalar(const Json& config, int64_t largest) {
  const int64_t heads = config["num_attention_heads"], width = config["hidden_size"];
  if (config["num_hidden_layers"] != largest) return config["head_dim"].get<double>();
  return static_cast<double>(width) / static_cast<double>(heads);
}

Status add_cap(const GgufMetadata& m, const char* from, const char* to, double usual,
               Json& config) {
  VKF_ASSIGN(const double cap, m.number_or(from, usual));
  if (cap != 0) config[to] = cap;
  return {};
}

Result<Json> gemma2_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, gemma_config(m));
  VKF_CHECK(add_cap(m, "attn_logit_softcapping", "attn_logit_softcapping", 50.0, config));
  VKF_CHECK(add_cap(m, "final_logit_softcapping", "final_logit_softcapping", 30.0, config));
  VKF_ASSIGN(config["sliding_window"], m.size_or("attention.sliding_window", 4096));
  config["query_pre_attn_scalar"] = gemma_scalar(config, 46);
  return config;
}

Result<Json> gemma3_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, gemma_config(m));
  VKF_CHECK(add_cap(m, "final_logit_softcapping", "final_logit_softcapping", 0.0, config));
  VKF_ASSIGN(config["sliding_window"], m.size_or("attention.sliding_window", 4096));
  config["query_pre_attn_scalar"] = gemma_scalar(config, 62);
  Json full = config["rope_parameters"];
  if (!m.has("rope.freq_base")) full["rope_theta"] = 1e6;
  Json sliding = {{"rope_type", "default"}};
  VKF_ASSIGN(sliding["rope_theta"], m.number_or("rope.freq_base_swa", 10000.0));
  config["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", sliding}};
  const char* pattern = "attention.sliding_window_pattern";
  const int64_t layers = config["num_hidden_layers"];
  if (!m.has("attention.sliding_window")) {
    config["sliding_window_pattern"] = 1;  // every layer sees all
  } else if (m.has(pattern) && m.file().values().at(m.key(pattern)).kind == GgufKind::kArray) {
    VKF_ASSIGN(const std::vector<double> slides, m.file().get_numbers(m.key(pattern)));
    Json types = Json::array();
    for (size_t i = 0; i < slides.size() && i < static_cast<size_t>(layers); ++i) {
      types.push_back(slides[i] != 0 ? "sliding_attention" : "full_attention");
    }
    config["layer_types"] = std::move(types);
  } else {
    VKF_ASSIGN(config["sliding_window_pattern"], m.size_or(pattern, 6));
  }
  return config;
}

// EmbeddingGemma, which sees both ways.
Result<Json> gemma_embedding_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, gemma3_config(m));
  config["use_bidirectional_attention"] = true;
  return config;
}

Result<Json> phi3_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.partial = true}));
  VKF_ASSIGN(const int64_t window, m.file().get_int_or(m.key("attention.sliding_window"), 0));
  if (window > 0) config["sliding_window"] = window;
  constexpr const char* kShort = "rope_factors_short.weight";
  constexpr const char* kLong = "rope_factors_long.weight";
  if (m.tensor(kShort) == nullptr || m.tensor(kLong) == nullptr) return config;
  Json& rope = config["rope_parameters"];
  rope["rope_type"] = "longrope";
  VKF_ASSIGN(rope["short_factor"], m.values(kShort));
  VKF_ASSIGN(rope["long_factor"], m.values(kLong));
  VKF_ASSIGN(const int64_t original, m.size("rope.scaling.original_context_length"));
  rope["original_max_position_embeddings"] = original;
  config["original_max_position_embeddings"] = original;
  if (m.has("rope.scaling.attn_factor")) {
    VKF_ASSIGN(rope["attention_factor"], m.number_or("rope.scaling.attn_factor", 1.0));
  }
  return config;
}

Result<Json> smollm3_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  config["no_rope_layer_interval"] = 4;  // files do not say which layers have no positions
  return config;
}

Result<Json> granite_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  // Without the key, scores are divided by the root of a head's width.
  const double usual = 1.0 / std::sqrt(config["head_dim"].get<double>());
  VKF_ASSIGN(config["attention_multiplier"], m.number_or("attention.scale", usual));
  VKF_ASSIGN(config["embedding_multiplier"], m.number_or("embedding_scale", 1.0));
  VKF_ASSIGN(config["residual_multiplier"], m.number_or("residual_scale", 1.0));
  VKF_ASSIGN(config["logits_scaling"], m.number_or("logit_scale", 1.0));
  return config;
}

Result<Json> olmo2_config(const GgufMetadata& m) {
  if (m.has("attention.sliding_window")) {
    return m.refused("attention.sliding_window",
                     "as OLMo 3 has it; this architecture is supported without windows.");
  }
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  return config;
}

Result<Json> olmoe_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  VKF_ASSIGN(config["num_experts"], m.size("expert_count"));
  VKF_ASSIGN(config["num_experts_per_tok"], m.size("expert_used_count"));
  VKF_ASSIGN(config["norm_topk_prob"], m.file().get_bool_or(m.key("expert_weights_norm"), false));
  if (m.has("attention.clamp_kqv")) {
    VKF_ASSIGN(config["clip_qkv"], m.number_or("attention.clamp_kqv", 0.0));
  }
  return config;
}

Result<Json> starcoder2_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.epsilon = "norm_epsilon",
                                             .epsilon_key = "attention.layer_norm_epsilon"}));
  config["use_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  config["hidden_act"] = "gelu_pytorch_tanh";
  return config;
}

Result<Json> cohere_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.epsilon = "layer_norm_eps",
                                             .epsilon_key = "attention.layer_norm_epsilon"}));
  add_biases(m, config);
  config["use_qk_norm"] = m.tensor("blk.0.attn_q_norm.weight") != nullptr;
  VKF_ASSIGN(config["logit_scale"], m.number_or("logit_scale", 1.0));
  return config;
}

Result<Json> stablelm_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.partial = true,
                                             .epsilon = "layer_norm_eps",
                                             .epsilon_key = "attention.layer_norm_epsilon"}));
  config["use_qkv_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  config["qk_layernorm"] = m.tensor("blk.0.attn_q_norm.weight") != nullptr;
  // Layers whose two parts read the same norm have no other one.
  config["use_parallel_residual"] = m.tensor("blk.0.ffn_norm.weight") == nullptr;
  return config;
}

// Layers of convolutions have no heads of keys.
Result<Json> lfm2_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.layers = true, .epsilon = "norm_eps"}));
  config["block_ff_dim"] = config["intermediate_size"];
  config["block_auto_adjust_ff_dim"] = false;
  VKF_ASSIGN(config["conv_L_cache"], m.size("shortconv.l_cache"));
  VKF_ASSIGN(const std::vector<double> heads,
             m.file().get_numbers(m.key("attention.head_count_kv")));
  const auto layers = config["num_hidden_layers"].get<int64_t>();
  if (static_cast<int64_t>(heads.size()) != layers) {
    return m.refused("attention.head_count_kv",
                     message({"with ", heads.size(), " entries, but there are ", layers,
                              " layers, which need one each."}));
  }
  Json types = Json::array();
  bool biased = false;
  for (size_t i = 0; i < heads.size(); ++i) {
    types.push_back(heads[i] == 0 ? "conv" : "full_attention");
    biased = biased || m.tensor(message({"blk.", i, ".shortconv.conv.bias"}).c_str()) != nullptr;
  }
  config["layer_types"] = std::move(types);
  config["conv_bias"] = biased;
  return config;
}

// The state-space part of Mamba 2, by the keys that a family has for it.
struct StateKeys {
  const char *heads, *head_width, *state, *groups, *taps;
};

Status add_state(const GgufMetadata& m, const StateKeys& keys, Json& config) {
  VKF_ASSIGN(const int64_t inner, m.size("ssm.inner_size"));
  VKF_ASSIGN(const int64_t heads, m.size("ssm.time_step_rank"));
  if (inner % heads != 0) {
    return m.refused("ssm.time_step_rank",
                     message({"as ", heads, " heads, but [", m.key("ssm.inner_size"), "] is ",
                              inner, ", which is not a multiple of it."}));
  }
  config[keys.heads] = heads;
  config[keys.head_width] = inner / heads;
  VKF_ASSIGN(config[keys.state], m.size("ssm.state_size"));
  VKF_ASSIGN(config[keys.groups], m.size_or("ssm.group_count", 1));
  VKF_ASSIGN(config[keys.taps], m.size("ssm.conv_kernel"));
  return {};
}

Result<Json> mamba2_config(const GgufMetadata& m) {
  Json config;
  VKF_ASSIGN(const int64_t width, m.size("embedding_length"));
  config["hidden_size"] = width;
  VKF_ASSIGN(config["num_hidden_layers"], m.size("block_count"));
  VKF_ASSIGN(config["vocab_size"], m.rows("token_embd.weight"));
  VKF_ASSIGN(config["layer_norm_epsilon"],
             m.file().get_double(m.key("attention.layer_norm_rms_epsilon")));
  VKF_CHECK(
      add_state(m, {"num_heads", "head_dim", "state_size", "n_groups", "conv_kernel"}, config));
  VKF_ASSIGN(const int64_t inner, m.size("ssm.inner_size"));
  if (inner % width != 0) {
    return m.refused(
        "ssm.inner_size",
        message({"as ", inner, ", but it must be a multiple of the model's width, ", width, "."}));
  }
  config["expand"] = inner / width;
  config["use_conv_bias"] = m.tensor("blk.0.ssm_conv1d.bias") != nullptr;
  config["use_bias"] = m.tensor("blk.0.ssm_in.bias") != nullptr;
  config["tie_word_embeddings"] = m.tensor("output.weight") == nullptr;
  return config;
}

// Its multipliers are part of the weights in files.
Result<Json> falcon_h1_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  add_biases(m, config);
  VKF_CHECK(add_state(
      m, {"mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"},
      config));
  VKF_ASSIGN(config["mamba_d_ssm"], m.size("ssm.inner_size"));
  config["mamba_conv_bias"] = m.tensor("blk.0.ssm_conv1d.bias") != nullptr;
  config["mamba_proj_bias"] = m.tensor("blk.0.ssm_in.bias") != nullptr;
  config["projectors_bias"] = m.tensor("blk.0.ssm_out.bias") != nullptr;
  config["mamba_rms_norm"] = m.tensor("blk.0.ssm_norm.weight") != nullptr;
  config["mamba_norm_before_gate"] = false;
  return config;
}

Result<Json> gpt_neox_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, {.partial = true,
                                             .epsilon = "layer_norm_eps",
                                             .epsilon_key = "attention.layer_norm_epsilon"}));
  config["rotary_pct"] = config.value("partial_rotary_factor", 1.0);
  config["hidden_act"] = "gelu";
  VKF_ASSIGN(config["use_parallel_residual"],
             m.file().get_bool_or(m.key("use_parallel_residual"), true));
  config["attention_bias"] = m.tensor("blk.0.attn_qkv.bias") != nullptr;
  return config;
}

Result<Json> bloom_config(const GgufMetadata& m) {
  Json config;
  VKF_CHECK(add_sizes(m, "layer_norm_epsilon", "attention.layer_norm_epsilon", config));
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["seq_length"] = config["max_position_embeddings"];
  config["tie_word_embeddings"] = m.tensor("output.weight") == nullptr;
  return config;
}

Result<Json> encoder_config(const GgufMetadata& m) {
  Json config;
  VKF_CHECK(add_sizes(m, "layer_norm_eps", "attention.layer_norm_epsilon", config));
  VKF_ASSIGN(config["intermediate_size"], m.size("feed_forward_length"));
  VKF_ASSIGN(const bool causal, m.file().get_bool_or(m.key("attention.causal"), false));
  if (causal) return m.refused("attention.causal", "as true; encoders see both ways (false).");
  config["type_vocab_size"] = 2;
  if (m.tensor("token_types.weight") != nullptr) {
    VKF_ASSIGN(config["type_vocab_size"], m.rows("token_types.weight"));
  }
  return config;
}

Result<Json> bert_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, encoder_config(m));
  config["hidden_act"] = "gelu";
  VKF_ASSIGN(config["max_position_embeddings"], m.rows("position_embd.weight"));
  if (m.tensor("cls.output.weight") == nullptr) return config;
  // A classifier: of rerankers, whose one class is how well two texts fit. RoBERTa's has the layers
  // of BERT's under other names, and its table of positions has no unused rows in files.
  config["model_type"] = "bert";
  config["architectures"] = Json::array({"BertForSequenceClassification"});
  VKF_ASSIGN(const int64_t labels, m.rows("cls.output.weight"));
  VKF_ASSIGN(const std::vector<std::string_view> names,
             m.file().get_strings(m.key("classifier.output_labels")));
  Json& by_id = config["id2label"] = Json::object();
  for (int64_t i = 0; i < std::min<int64_t>(labels, 1 << 16); ++i) {
    const auto place = static_cast<size_t>(i);
    by_id[std::to_string(i)] =
        place < names.size() ? std::string(names[place]) : message({"LABEL_", i});
  }
  return config;
}

Result<Json> nomic_bert_config(const GgufMetadata& m) {
  VKF_ASSIGN(Json config, encoder_config(m));
  config["hidden_act"] = "silu";
  VKF_ASSIGN(config["rope_parameters"], rotary_parameters(m, 1000.0));
  return config;
}

Result<Json> t5_config(const GgufMetadata& m) {
  Json config;
  VKF_ASSIGN(config["d_model"], m.size("embedding_length"));
  VKF_ASSIGN(config["num_layers"], m.size("block_count"));
  VKF_ASSIGN(config["num_decoder_layers"],
             m.size_or("decoder_block_count", config["num_layers"].get<int64_t>()));
  VKF_ASSIGN(config["num_heads"], m.size("attention.head_count"));
  VKF_ASSIGN(config["d_kv"], m.size("attention.key_length"));
  VKF_ASSIGN(config["d_ff"], m.size("feed_forward_length"));
  VKF_ASSIGN(config["vocab_size"], m.rows("token_embd.weight"));
  VKF_ASSIGN(config["layer_norm_epsilon"],
             m.file().get_double(m.key("attention.layer_norm_rms_epsilon")));
  VKF_ASSIGN(config["relative_attention_num_buckets"],
             m.size_or("attention.relative_buckets_count", 32));
  const bool gated = m.tensor("enc.blk.0.ffn_gate.weight") != nullptr;
  config["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
  const bool tied = m.tensor("output.weight") == nullptr;
  config["tie_word_embeddings"] = tied;
  // T5 v1.1 and mT5, which have gates, scale nothing, whether their heads are shared or not.
  config["scale_decoder_outputs"] = tied && !gated;
  VKF_ASSIGN(config["decoder_start_token_id"],
             m.file().get_int_or(m.key("decoder_start_token_id"), 0));
  return config;
}

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "llama", "mistral mixtral", "LlamaForCausalLM", llama_config, llama_names},
    {"qwen2", "qwen2", "", "Qwen2ForCausalLM", qwen2_config, plain_decoder_names},
    {"qwen3", "qwen3", "", "Qwen3ForCausalLM", qwen3_config, qwen3_names},
    {"qwen3moe", "qwen3_moe", "", "Qwen3MoeForCausalLM", qwen3_moe_config, qwen3_moe_names},
    {"gemma", "gemma", "", "GemmaForCausalLM", gemma_config, gemma_names},
    {"gemma2", "gemma2", "", "Gemma2ForCausalLM", gemma2_config, gemma2_names},
    {"gemma3", "gemma3_text", "gemma3", "Gemma3ForCausalLM", gemma3_config, gemma2_names},
    {"gemma-embedding", "gemma3_text", "", "Gemma3TextModel", gemma_embedding_config,
     gemma_embedding_names},
    {"phi3", "phi3", "", "Phi3ForCausalLM", phi3_config, phi3_names},
    {"gpt-oss", "gpt_oss", "", "GptOssForCausalLM", gpt_oss_config, gpt_oss_names},
    {"smollm3", "smollm3", "", "SmolLM3ForCausalLM", smollm3_config, paired_decoder_names},
    {"granite", "granite", "", "GraniteForCausalLM", granite_config, paired_decoder_names},
    {"olmo2", "olmo2", "", "Olmo2ForCausalLM", olmo2_config, olmo2_names},
    {"olmoe", "olmoe", "", "OlmoeForCausalLM", olmoe_config, qwen3_moe_names},
    {"starcoder2", "starcoder2", "", "Starcoder2ForCausalLM", starcoder2_config, starcoder2_names},
    {"command-r", "cohere", "", "CohereForCausalLM", cohere_config, qwen3_names},
    {"stablelm", "stablelm", "", "StableLmForCausalLM", stablelm_config, stablelm_names},
    {"gptneox", "gpt_neox", "", "GPTNeoXForCausalLM", gpt_neox_config, gpt_neox_names},
    {"bloom", "bloom", "", "BloomForCausalLM", bloom_config, bloom_names},
    {"lfm2", "lfm2", "", "Lfm2ForCausalLM", lfm2_config, lfm2_names},
    {"mamba2", "mamba2", "", "Mamba2ForCausalLM", mamba2_config, mamba2_names},
    {"falcon-h1", "falcon_h1", "", "FalconH1ForCausalLM", falcon_h1_config, falcon_h1_names},
    {"bert", "bert", "", "BertModel", bert_config, bert_names},
    {"nomic-bert", "nomic_bert", "", "NomicBertModel", nomic_bert_config, nomic_bert_names},
    {"t5", "t5", "mt5", "T5ForConditionalGeneration", t5_config, nullptr},
    {"t5encoder", "t5", "mt5", "T5EncoderModel", t5_config, nullptr},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architecture_list() {
  return kArchitectures;
}

const GgufArchitecture* find_gguf_architecture(const std::string& name) {
  const auto found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                  [&](const GgufArchitecture& one) { return name == one.name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

}  // namespace vkformer
