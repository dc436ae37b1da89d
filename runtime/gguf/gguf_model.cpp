#include "gguf/gguf_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;
using Names = std::vector<GgufName>;

// The metadata of one model, by keys without the architecture in front.
class Metadata {
 public:
  Metadata(const std::vector<const GgufFile*>& files, std::string architecture)
      : files_(files), architecture_(std::move(architecture)) {}

  const GgufFile& file() const { return *files_.front(); }
  const std::string& architecture() const { return architecture_; }
  std::string key(const char* name) const { return architecture_ + "." + name; }
  bool has(const char* name) const { return file().has(key(name)); }
  Result<double> number_or(const char* name, double fallback) const {
    return file().get_double_or(key(name), fallback);
  }
  Result<std::string> text_or(const char* name, const char* fallback) const {
    return file().get_string_or(key(name), fallback);
  }
  // A size of at least 1. A list by layer counts as one number where all of them are the same.
  Result<int64_t> size(const char* name) const;
  Result<int64_t> size_or(const char* name, int64_t fallback) const {
    if (!has(name)) return fallback;
    return size(name);
  }
  // The tensor of that name in any of the files, or null.
  const GgufTensor* tensor(const char* name) const {
    for (const GgufFile* file : files_) {
      const auto found = file->tensors().find(name);
      if (found != file->tensors().end()) return &found->second;
    }
    return nullptr;
  }
  // Rows of a matrix that there must be.
  Result<int64_t> rows(const char* name) const;
  // The values of a small tensor, in double.
  Result<std::vector<double>> values(const char* name) const;
  Error refused(const char* name, const std::string& what) const {
    return unsupported(message({"File [", file().path(), "] has [", key(name), "] ", what}));
  }

 private:
  const std::vector<const GgufFile*>& files_;
  std::string architecture_;
};

Result<int64_t> Metadata::size(const char* name) const {
  const std::string full = key(name);
  const auto found = file().values().find(full);
  int64_t value = 0;
  if (found != file().values().end() && found->second.kind == GgufKind::kArray) {
    VKF_ASSIGN(const std::vector<double> all, file().get_numbers(full));
    const bool differ =
        std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) != all.end();
    if (all.empty() || differ) {
      return refused(name, "with different values by layer, but layers must be alike.");
    }
    // What no 63 bits hold is refused below.
    value = all[0] >= 1 && all[0] < 9e18 ? static_cast<int64_t>(all[0]) : 0;
  } else {
    VKF_ASSIGN(value, file().get_int(full));
  }
  if (value >= 1) return value;
  return file().key_error(full, message({"as ", value, ", but it must be at least 1."}));
}

Result<int64_t> Metadata::rows(const char* name) const {
  const GgufTensor* found = tensor(name);
  if (found != nullptr && found->shape.size() == 2) return found->shape[0];
  return invalid_file(message({"File [", file().path(), "] has no matrix [", name,
                               "], which the architecture ", architecture_, " needs."}));
}

Result<std::vector<double>> Metadata::values(const char* name) const {
  constexpr int64_t kMost = 1 << 16;
  const GgufTensor& found = *tensor(name);
  if (element_count(found.shape) > kMost) {
    return invalid_file(
        message({"File [", file().path(), "] has [", name, "] of shape ", shape_text(found.shape),
                 ", but it may have up to ", kMost, " elements."}));
  }
  std::vector<float> decoded(static_cast<size_t>(element_count(found.shape)));
  decode_ggml(found.type, found.bytes, 0, decoded);
  return std::vector<double>(decoded.begin(), decoded.end());
}

// Names

void append(Names& names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
}

// LLaMA's layers, whose norms have these names; `gain` of their gains.
Names decoder_names(GgufUse gain, const char* ffn_norm) {
  return {{"token_embd", "model.embed_tokens"},
          {"output", "lm_head"},
          {"output_norm", "model.norm", gain},
          {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", gain},
          {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
          {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
          {"blk.{}.ffn_norm", ffn_norm, gain},
          {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
          {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
          {"rope_freqs", "", GgufUse::kIgnored},
          {"blk.{}.rope_freqs", "", GgufUse::kIgnored},
          {"blk.{}.attn_rot_embd", "", GgufUse::kIgnored}};
}

constexpr const char* kFfnNorm = "model.layers.{}.post_attention_layernorm";

Names apart_names(GgufUse queries = GgufUse::kPlain, GgufUse keys = GgufUse::kPlain) {
  return {{"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj", queries},
          {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj", keys},
          {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"}};
}

Names head_norm_names(GgufUse gain = GgufUse::kPlain) {
  return {{"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", gain},
          {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", gain}};
}

Names plain_decoder_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, apart_names());
  return names;
}

Names llama_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, apart_names(GgufUse::kQueries, GgufUse::kKeys));
  // Mixtral's experts.
  append(names, {{"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
                 {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w1",
                  GgufUse::kExperts},
                 {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w2",
                  GgufUse::kExperts},
                 {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w3",
                  GgufUse::kExperts}});
  return names;
}

Names qwen3_names() {
  Names names = plain_decoder_names();
  append(names, head_norm_names());
  return names;
}

Names expert_names(const char* router) {
  return {{"blk.{}.ffn_gate_inp", router},
          {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{x}.gate_proj", GgufUse::kExperts},
          {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{x}.up_proj", GgufUse::kExperts},
          {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{x}.down_proj", GgufUse::kExperts}};
}

Names qwen3_moe_names() {
  Names names = qwen3_names();
  append(names, expert_names("model.layers.{}.mlp.gate"));
  return names;
}

Names gpt_oss_names() {
  Names names = plain_decoder_names();
  append(names, expert_names("model.layers.{}.mlp.router"));
  append(names, {{"blk.{}.post_attention_norm", kFfnNorm},
                 {"blk.{}.attn_sinks", "model.layers.{}.self_attn.sinks", GgufUse::kPlain, true}});
  return names;
}

Names gemma_names() {
  Names names = decoder_names(GgufUse::kGain, kFfnNorm);
  append(names, apart_names());
  return names;
}

Names gemma2_names() {
  Names names = decoder_names(GgufUse::kGain, "model.layers.{}.pre_feedforward_layernorm");
  append(names, apart_names());
  append(names, head_norm_names(GgufUse::kGain));
  append(names,
         {{"blk.{}.post_attention_norm", kFfnNorm, GgufUse::kGain},
          {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", GgufUse::kGain}});
  return names;
}

Names gemma_embedding_names() {
  Names names = gemma2_names();
  append(names, {{"dense_2", "2_Dense/linear"}, {"dense_3", "3_Dense/linear"}});
  return names;
}

Names phi3_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, {{"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
                 {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
                 {"rope_factors_long", "", GgufUse::kIgnored},
                 {"rope_factors_short", "", GgufUse::kIgnored}});
  return names;
}

Names bert_names() {
  return {{"token_embd", "embeddings.word_embeddings"},
          {"position_embd", "embeddings.position_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "embeddings.LayerNorm"},
          {"blk.{}.attn_q", "encoder.layer.{}.attention.self.query"},
          {"blk.{}.attn_k", "encoder.layer.{}.attention.self.key"},
          {"blk.{}.attn_v", "encoder.layer.{}.attention.self.value"},
          {"blk.{}.attn_output", "encoder.layer.{}.attention.output.dense"},
          {"blk.{}.attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"},
          {"blk.{}.ffn_up", "encoder.layer.{}.intermediate.dense"},
          {"blk.{}.ffn_down", "encoder.layer.{}.output.dense"},
          {"blk.{}.layer_output_norm", "encoder.layer.{}.output.LayerNorm"}};
}

Names nomic_bert_names() {
  return {{"token_embd", "embeddings.word_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "emb_ln"},
          {"blk.{}.attn_qkv", "encoder.layers.{}.attn.Wqkv"},
          {"blk.{}.attn_output", "encoder.layers.{}.attn.out_proj"},
          {"blk.{}.attn_output_norm", "encoder.layers.{}.norm1"},
          {"blk.{}.ffn_up", "encoder.layers.{}.mlp.fc11"},
          {"blk.{}.ffn_gate", "encoder.layers.{}.mlp.fc12"},
          {"blk.{}.ffn_down", "encoder.layers.{}.mlp.fc2"},
          {"blk.{}.layer_output_norm", "encoder.layers.{}.norm2"}};
}

// A stack of T5. Its feed-forward layer is number 1 in the encoder, 2 in the decoder, and has other
// names where it has a gate.
#define VKF_T5_STACK(prefix, stack, ffn, gated)                                             \
  {prefix ".output_norm", stack ".final_layer_norm"},                                       \
      {prefix ".blk.{}.attn_norm", stack ".block.{}.layer.0.layer_norm"},                   \
      {prefix ".blk.{}.attn_q", stack ".block.{}.layer.0.SelfAttention.q"},                 \
      {prefix ".blk.{}.attn_k", stack ".block.{}.layer.0.SelfAttention.k"},                 \
      {prefix ".blk.{}.attn_v", stack ".block.{}.layer.0.SelfAttention.v"},                 \
      {prefix ".blk.{}.attn_o", stack ".block.{}.layer.0.SelfAttention.o"},                 \
      {prefix ".blk.{}.attn_rel_b",                                                         \
       stack ".block.{}.layer.0.SelfAttention.relative_attention_bias"},                    \
      {prefix ".blk.{}.ffn_norm", stack ".block.{}.layer." ffn ".layer_norm"},              \
      {prefix ".blk.{}.ffn_gate", stack ".block.{}.layer." ffn ".DenseReluDense.wi_0"},     \
      {prefix ".blk.{}.ffn_up", gated ? stack ".block.{}.layer." ffn ".DenseReluDense.wi_1" \
                                      : stack ".block.{}.layer." ffn ".DenseReluDense.wi"}, \
  {                                                                                         \
    prefix ".blk.{}.ffn_down", stack ".block.{}.layer." ffn ".DenseReluDense.wo"            \
  }

Names t5_names(bool gated) {
  return {VKF_T5_STACK("enc", "encoder", "1", gated),
          VKF_T5_STACK("dec", "decoder", "2", gated),
          {"token_embd", "shared"},
          {"output", "lm_head"},
          {"dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"},
          {"dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"},
          {"dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"},
          {"dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"},
          {"dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"},
          {"dec.blk.{}.cross_attn_rel_b", "", GgufUse::kIgnored}};
}

#undef VKF_T5_STACK

// Configurations

// What the rotary keys say, but for factors in tensors.
Result<Json> rotary_parameters(const Metadata& m, double theta) {
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
Status add_divisors(const Metadata& m, Json& rope) {
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

Status add_sizes(const Metadata& m, const char* epsilon, const char* epsilon_key, Json& config) {
  VKF_ASSIGN(config["hidden_size"], m.size("embedding_length"));
  VKF_ASSIGN(config["num_hidden_layers"], m.size("block_count"));
  VKF_ASSIGN(config["num_attention_heads"], m.size("attention.head_count"));
  VKF_ASSIGN(config["vocab_size"], m.rows("token_embd.weight"));
  VKF_ASSIGN(config["max_position_embeddings"], m.size("context_length"));
  VKF_ASSIGN(config[epsilon], m.file().get_double(m.key(epsilon_key)));
  return {};
}

// The width of a head, and of what is rotated of it.
Status add_heads(const Metadata& m, bool partial, Json& config) {
  const int64_t heads = config["num_attention_heads"], width = config["hidden_size"];
  VKF_ASSIGN(config["num_key_value_heads"], m.size_or("attention.head_count_kv", heads));
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

// What all decoders have.
Result<Json> decoder_config(const Metadata& m, bool partial = false) {
  Json config;
  VKF_CHECK(add_sizes(m, "rms_norm_eps", "attention.layer_norm_rms_epsilon", config));
  VKF_CHECK(add_heads(m, partial, config));
  VKF_ASSIGN(config["intermediate_size"], m.has("feed_forward_length")
                                              ? m.size("feed_forward_length")
                                              : m.size("expert_feed_forward_length"));
  VKF_ASSIGN(Json rope, rotary_parameters(m, 10000.0));
  VKF_CHECK(add_divisors(m, rope));
  config["rope_parameters"] = std::move(rope);
  config["tie_word_embeddings"] = m.tensor("output.weight") == nullptr;
  return config;
}

Result<Json> llama_config(const Metadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["attention_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  config["mlp_bias"] = m.tensor("blk.0.ffn_up.bias") != nullptr;
  VKF_ASSIGN(const int64_t experts, m.file().get_int_or(m.key("expert_count"), 0));
  if (experts <= 0) return config;
  config["model_type"] = "mixtral";
  config["architectures"] = Json::array({"MixtralForCausalLM"});
  config["num_local_experts"] = experts;
  VKF_ASSIGN(config["num_experts_per_tok"], m.size("expert_used_count"));
  return config;
}

Result<Json> qwen2_config(const Metadata& m) {
  return decoder_config(m);
}

Result<Json> qwen3_config(const Metadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["attention_bias"] = m.tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

Result<Json> qwen3_moe_config(const Metadata& m) {
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

Result<Json> gpt_oss_config(const Metadata& m) {
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

Result<Json> gemma_config(const Metadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m));
  config["hidden_activation"] = "gelu_pytorch_tanh";
  return config;
}

// The largest models of both generations scale scores by the width of the model over its heads;
// files do not say so, but have that number of layers.
double gemma_scalar(const Json& config, int64_t largest) {
  const int64_t heads = config["num_attention_heads"], width = config["hidden_size"];
  if (config["num_hidden_layers"] != largest) return config["head_dim"].get<double>();
  return static_cast<double>(width) / static_cast<double>(heads);
}

Status add_cap(const Metadata& m, const char* from, const char* to, double usual, Json& config) {
  VKF_ASSIGN(const double cap, m.number_or(from, usual));
  if (cap != 0) config[to] = cap;
  return {};
}

Result<Json> gemma2_config(const Metadata& m) {
  VKF_ASSIGN(Json config, gemma_config(m));
  VKF_CHECK(add_cap(m, "attn_logit_softcapping", "attn_logit_softcapping", 50.0, config));
  VKF_CHECK(add_cap(m, "final_logit_softcapping", "final_logit_softcapping", 30.0, config));
  VKF_ASSIGN(config["sliding_window"], m.size_or("attention.sliding_window", 4096));
  config["query_pre_attn_scalar"] = gemma_scalar(config, 46);
  return config;
}

Result<Json> gemma3_config(const Metadata& m) {
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
Result<Json> gemma_embedding_config(const Metadata& m) {
  VKF_ASSIGN(Json config, gemma3_config(m));
  config["use_bidirectional_attention"] = true;
  return config;
}

Result<Json> phi3_config(const Metadata& m) {
  VKF_ASSIGN(Json config, decoder_config(m, true));
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

Result<Json> encoder_config(const Metadata& m) {
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

Result<Json> bert_config(const Metadata& m) {
  VKF_ASSIGN(Json config, encoder_config(m));
  config["hidden_act"] = "gelu";
  VKF_ASSIGN(config["max_position_embeddings"], m.rows("position_embd.weight"));
  return config;
}

Result<Json> nomic_bert_config(const Metadata& m) {
  VKF_ASSIGN(Json config, encoder_config(m));
  config["hidden_act"] = "silu";
  VKF_ASSIGN(config["rope_parameters"], rotary_parameters(m, 1000.0));
  return config;
}

Result<Json> t5_config(const Metadata& m) {
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

struct Architecture {
  const char* name;
  const char* family;   // model_type
  const char* further;  // model types whose tensors have the same names, or ""
  const char* of;       // the class
  Result<Json> (*config)(const Metadata& m);
  Names (*names)();
};

constexpr Architecture kArchitectures[] = {
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
    {"bert", "bert", "", "BertModel", bert_config, bert_names},
    {"nomic-bert", "nomic_bert", "", "NomicBertModel", nomic_bert_config, nomic_bert_names},
    {"t5", "t5", "mt5", "T5ForConditionalGeneration", t5_config, nullptr},
    {"t5encoder", "t5", "mt5", "T5EncoderModel", t5_config, nullptr},
};

const Architecture* find_architecture(const std::string& name) {
  const auto found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                  [&](const Architecture& one) { return name == one.name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

// `gated`: of the feed-forward layers of T5.
Names names_of(const Architecture& architecture, bool gated) {
  return architecture.names != nullptr ? architecture.names() : t5_names(gated);
}

// How texts become embeddings: by pooling, then to length 1, as the format's own programs do.
Status add_pooling(const Metadata& m, GgufModel& model) {
  VKF_ASSIGN(const int64_t type, m.file().get_int_or(m.key("pooling_type"), 0));
  if (type == 0) return {};
  constexpr const char* kModes[] = {"mean", "cls", "lasttoken"};
  if (type < 0 || type > 3) {
    return m.refused("pooling_type", message({"as ", type,
                                              "; 0 (none), 1 (mean), 2 (first token) "
                                              "and 3 (last token) are supported."}));
  }
  model.pooling = {{"pooling_mode", kModes[type - 1]}};
  Json& modules = model.modules;
  modules = Json::array();
  const auto add = [&](const char* path, const char* name) {
    modules.push_back({{"idx", modules.size()},
                       {"name", std::to_string(modules.size())},
                       {"path", path},
                       {"type", std::string("sentence_transformers.models.") + name}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  for (const auto& [tensor, folder] :
       {std::pair{"dense_2.weight", "2_Dense"}, std::pair{"dense_3.weight", "3_Dense"}}) {
    const GgufTensor* dense = m.tensor(tensor);
    if (dense == nullptr || dense->shape.size() != 2) continue;
    add(folder, "Dense");
    model.dense[std::string(folder) + "/config.json"] = {
        {"in_features", dense->shape[1]}, {"out_features", dense->shape[0]}, {"bias", false}};
  }
  add("2_Normalize", "Normalize");
  return {};
}

// Texts of tokens that end an answer in the templates of instruction-tuned models. Their files name
// one token that ends a text, but not always this one.
constexpr std::string_view kEnds[] = {"<|eot_id|>",    "<|im_end|>", "<|end|>",  "<|eom_id|>",
                                      "<end_of_turn>", "<|return|>", "<|call|>", "<|endoftext|>"};

Status add_ends(const Metadata& m, const std::vector<std::string_view>& tokens, Json& ends) {
  const auto add = [&](int64_t id) {
    if (std::find(ends.begin(), ends.end(), Json(id)) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (!m.file().has(key)) continue;
    VKF_ASSIGN(const int64_t id, m.file().get_int(key));
    add(id);
  }
  VKF_ASSIGN(const std::vector<double> types, m.file().get_numbers("tokenizer.ggml.token_type"));
  constexpr double kControl = 3;
  for (size_t i = 0; i < tokens.size() && i < types.size(); ++i) {
    // GPT-OSS ends a message, not its answer, with this one.
    if (tokens[i] == "<|end|>" && m.architecture() == "gpt-oss") continue;
    const bool known = std::find(std::begin(kEnds), std::end(kEnds), tokens[i]) != std::end(kEnds);
    if (known && types[i] == kControl) add(static_cast<int64_t>(i));
  }
  return {};
}

Status add_token_ids(const Metadata& m, GgufModel& model) {
  const GgufFile& file = m.file();
  VKF_ASSIGN(const std::vector<std::string_view> tokens, file.get_strings("tokenizer.ggml.tokens"));
  Json& generation = model.generation;
  generation = Json::object();
  for (const auto& [to, from] : {std::pair{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                 std::pair{"pad_token_id", "tokenizer.ggml.padding_token_id"}}) {
    if (!file.has(from)) continue;
    VKF_ASSIGN(generation[to], file.get_int(from));
    model.config[to] = generation[to];
  }
  if (m.architecture() == "t5") {
    generation["decoder_start_token_id"] = model.config["decoder_start_token_id"];
  }
  Json ends = Json::array();
  VKF_CHECK(add_ends(m, tokens, ends));
  if (ends.empty()) return {};
  generation["eos_token_id"] = ends;
  model.config["eos_token_id"] = ends.front();
  return {};
}

}  // namespace

std::string gguf_architectures() {
  std::string names;
  for (const Architecture& one : kArchitectures) {
    names += std::string(names.empty() ? "" : ", ") + one.name;
  }
  return names;
}

Result<GgufNaming> gguf_naming(const std::string& architecture, const JsonConfig& config) {
  const Architecture* found = find_architecture(architecture);
  if (found == nullptr) {
    return unsupported(message({"The architecture is ", bracketed(architecture),
                                ", which is not supported in GGUF files. Supported are ",
                                gguf_architectures(), "."}));
  }
  VKF_ASSIGN(const std::string type, config.get_string("model_type"));
  const std::string further = message({" ", found->further, " "});
  if (type != found->family && further.find(" " + type + " ") == std::string::npos) {
    return invalid_file(message({"The architecture is ", architecture, ", but [model_type] in ",
                                 config.where(), " is ", bracketed(type), "."}));
  }
  // Models of pictures and texts have the numbers of their texts in an object.
  const JsonConfig texts = config.has("text_config") ? config.object("text_config") : config;
  VKF_ASSIGN(const std::string ffn, texts.get_string_or("feed_forward_proj", ""));
  GgufNaming naming{.names = names_of(*found, ffn.starts_with("gated")),
                    .architecture = architecture};
  VKF_ASSIGN(naming.heads, texts.get_int_or("num_attention_heads", 0));
  VKF_ASSIGN(naming.kv_heads, texts.get_int_or("num_key_value_heads", naming.heads));
  return naming;
}

Result<GgufModel> read_gguf_model(const std::vector<const GgufFile*>& files) {
  const GgufFile& file = *files.front();
  VKF_ASSIGN(const std::string kind, file.get_string_or("general.type", "model"));
  if (kind == "adapter") {
    return invalid_file(message({"File [", file.path(),
                                 "] is an adapter by its [general.type] and no model; give it "
                                 "beside its model, as --adapter or in ModelOptions::adapters."}));
  }
  VKF_ASSIGN(const std::string name, file.get_string("general.architecture"));
  const Architecture* found = find_architecture(name);
  if (found == nullptr) {
    return unsupported(
        message({"File [", file.path(), "] has [general.architecture] as ", bracketed(name),
                 ", which is not supported in GGUF files. "
                 "Supported are ",
                 gguf_architectures(), "."}));
  }
  const Metadata m(files, name);
  GgufModel model;
  VKF_ASSIGN(Json config, found->config(m));
  model.config = std::move(config);
  if (!model.config.contains("model_type")) {
    model.config["model_type"] = found->family;
    model.config["architectures"] = Json::array({found->of});
  }
  const bool gated = m.tensor("enc.blk.0.ffn_gate.weight") != nullptr;
  model.naming = {.names = names_of(*found, gated),
                  .architecture = name,
                  .heads = model.config.value("num_attention_heads", int64_t{0}),
                  .kv_heads = model.config.value("num_key_value_heads", int64_t{0})};
  VKF_CHECK(add_token_ids(m, model));
  VKF_CHECK(add_pooling(m, model));
  return model;
}

}  // namespace vkformer
