// LLaMA (Touvron et al., 2023), Mistral (Jiang et al., 2023), Qwen2 (Yang et al., 2024), Gemma and
// Gemma 2 (Gemma Team, 2024): rotary positions, RMSNorm, grouped keys and values, a gated
// feed-forward layer.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "model/blocks/named_decoder.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"
#include "ops/attention.h"

namespace vkformer {
namespace {

// Which linear layers have biases.
struct LlamaBiases {
  bool qkv = false;
  bool out = false;
  bool ffn = false;
};

// What the families differ in where a key is missing, by the library's defaults.
struct LlamaDefaults {
  const char* family;
  const char* architecture;
  int64_t ffn;
  int64_t max_positions;
  const char* activation = "silu";
  int64_t head_width = 0;  // 0: D / H
  // kYes: a norm is (1 + gain) x, and the embedding is multiplied by sqrt(D).
  enum class Gemma : uint8_t { kNo, kYes } gemma = Gemma::kNo;

  bool is_gemma() const { return gemma == Gemma::kYes; }
};

WeightRow biased_row(bool bias, std::string name, const std::vector<std::string>& modules,
                     int64_t n, int64_t k) {
  return bias ? linear_row(std::move(name), modules, n, k)
              : plain_linear_row(std::move(name), modules, n, k);
}

class Llama : public NamedDecoder {
 public:
  Llama(ModelFacts facts, GenerationFacts generation, DecoderConfig block, DecoderNames names,
        LlamaBiases biases, float gain_offset)
      : NamedDecoder(std::move(facts), std::move(generation), std::move(block), std::move(names)),
        biases_(biases),
        gain_offset_(gain_offset) {}

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  // Norms of one layer: our name and the file's.
  void add_norms(const std::string& to, const std::string& from, WeightTable& table) const;
  WeightRow gain(std::string name, const std::string& module) const {
    WeightRow row = gain_row(std::move(name), module, block().stack.width);
    row.gain_offset = gain_offset_;
    return row;
  }

  LlamaBiases biases_;
  float gain_offset_ = 0.0f;  // files of Gemma hold gains less 1
};

void Llama::add_norms(const std::string& to, const std::string& from, WeightTable& table) const {
  table.rows.push_back(gain(to + ".self.norm", from + "input_layernorm"));
  if (block().stack.after_norm == StackConfig::AfterNorm::kNo) {
    table.rows.push_back(gain(to + ".ffn.norm", from + "post_attention_layernorm"));
    return;
  }
  table.rows.push_back(gain(to + ".self.after", from + "post_attention_layernorm"));
  table.rows.push_back(gain(to + ".ffn.norm", from + "pre_feedforward_layernorm"));
  table.rows.push_back(gain(to + ".ffn.after", from + "post_feedforward_layernorm"));
}

void Llama::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const int64_t d = s.width;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "layers." + std::to_string(i) + ".";
    const std::string attn = from + "self_attn.";
    const std::string mlp = from + "mlp.";
    add_norms(to, from, table);
    WeightRow qkv =
        biased_row(biases_.qkv, to + ".self.qkv",
                   {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, s.qkv_width(), d);
    qkv.source_rows = {s.heads * s.head(), s.kv() * s.head(), s.kv() * s.head()};
    table.rows.push_back(std::move(qkv));
    table.rows.push_back(
        biased_row(biases_.out, to + ".self.out", {attn + "o_proj"}, d, s.heads * s.head()));
    table.rows.push_back(in_gate_pairs(biased_row(
        biases_.ffn, to + ".ffn.up", {mlp + "gate_proj", mlp + "up_proj"}, 2 * s.ffn, d)));
    table.rows.push_back(biased_row(biases_.ffn, to + ".ffn.down", {mlp + "down_proj"}, d, s.ffn));
  }
  table.rows.push_back(gain(s.rows + ".norm", prefix + "norm"));
  // Frequencies that older versions of the library saved.
  table.ignored.push_back(prefix + "*.rotary_emb.inv_freq");
}

Status read_heads(const JsonConfig& config, int64_t width, StackConfig& stack) {
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 32, kMostWidth));
  VKF_ASSIGN(stack.kv_heads, get_size_or(config, "num_key_value_heads", stack.heads, kMostWidth));
  VKF_ASSIGN(stack.head_width, get_size_or(config, "head_dim", width, kMostHeadWidth));
  if (stack.head_width == 0) {
    VKF_ASSIGN(stack.head_width, head_width(config, stack.width, stack.heads));
  }
  if (stack.heads % stack.kv_heads == 0) return {};
  return invalid_file(message({"[num_key_value_heads] in ", config.where(), " is ", stack.kv_heads,
                               ", but must divide the ", stack.heads, " attention heads"}));
}

Status read_stack(const JsonConfig& config, const LlamaDefaults& defaults, StackConfig& stack) {
  stack.rows = "decoder";
  stack.norm = StackConfig::Norm::kRms;
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.gate = StackConfig::Gate::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 4096, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 32, kMostLayers));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", defaults.ffn, kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "rms_norm_eps", 1e-6));
  // Gemma's newer key is the one that its models were trained with.
  const bool renamed = defaults.is_gemma() && config.has("hidden_activation");
  VKF_ASSIGN(stack.activation, get_activation(config, renamed ? "hidden_activation" : "hidden_act",
                                              defaults.activation));
  stack.kinds = {AttentionKind{.rotary = 0}};
  return read_heads(config, defaults.head_width, stack);
}

Result<RotarySetup> read_rotary_setup(const JsonConfig& config, const StackConfig& stack,
                                      int64_t max_positions) {
  RotarySetup setup;
  VKF_ASSIGN(setup.width, read_rotary_width(config, stack.head(), 1.0));
  if (setup.width == 0) {
    return invalid_file(message({"[partial_rotary_factor] in ", config.where(),
                                 " leaves no column of the heads, which are ", stack.head(),
                                 " wide, with positions; it must leave at least 2"}));
  }
  VKF_ASSIGN(setup.scaling, read_model_rotary(config, {.max_positions = max_positions}));
  VKF_CHECK(check_rotary_scaling(setup.scaling, setup.width, config.where()));
  return setup;
}

// A second kind of attention, which sees `window` keys: the query's own and those before it.
void add_window(StackConfig& stack, int64_t window) {
  stack.kinds.push_back({.window_left = window - 1, .rotary = 0});
}

// Mistral: every layer slides.
Status read_mistral_window(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  if (!config.has("sliding_window")) return {};
  VKF_ASSIGN(int64_t window, get_size(config, "sliding_window", INT32_MAX));
  stack.kinds.clear();
  add_window(stack, window);
  return {};
}

// Which layers slide, by layer_types or, without it, as `slides` says.
template <class Slides>
Status read_layer_types(const JsonConfig& config, StackConfig& stack, Slides slides) {
  std::vector<std::string> counted;
  for (int64_t i = 0; i < stack.layers; ++i) {
    counted.emplace_back(slides(i) ? "sliding_attention" : "full_attention");
  }
  VKF_ASSIGN(std::vector<std::string> types, config.get_string_list_or("layer_types", counted));
  if (static_cast<int64_t>(types.size()) != stack.layers) {
    return invalid_file(message({"[layer_types] in ", config.where(), " has ", types.size(),
                                 " entries for ", stack.layers, " layers; they must be as many"}));
  }
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return unsupported(message({"[layer_types] in ", config.where(), " has '", type,
                                  "'; full_attention and sliding_attention are supported"}));
    }
    stack.kind_of.push_back(type == "sliding_attention" ? 1 : 0);
  }
  return {};
}

// Qwen2: by layer_types, or from max_window_layers on.
Status read_qwen2_windows(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_ASSIGN(bool uses, config.get_bool_or("use_sliding_window", false));
  const bool slides = uses && config.has("sliding_window");
  VKF_ASSIGN(int64_t first, config.get_int_or("max_window_layers", 28));
  VKF_CHECK(read_layer_types(config, stack, [&](int64_t i) { return slides && i >= first; }));
  if (!slides && std::count(stack.kind_of.begin(), stack.kind_of.end(), 1) > 0) {
    return invalid_file(message({"[layer_types] in ", config.where(),
                                 " has sliding_attention, but use_sliding_window is not true or "
                                 "sliding_window is missing; set both"}));
  }
  if (!slides) return {};
  VKF_ASSIGN(int64_t window, get_size(config, "sliding_window", INT32_MAX));
  add_window(stack, window);
  return {};
}

// A cap of scores or logits; a missing one or null: none.
Result<float> read_cap(const JsonConfig& config, const std::string& key) {
  VKF_ASSIGN(double given, config.get_double_or(key, 0.0));
  const auto cap = static_cast<float>(given);
  if (!config.has(key) || (cap > 0 && softcap_error(cap).empty())) return cap;
  return invalid_file(message({"[", key, "] in ", config.where(), " is ", given,
                               ", but must be above 0 and a normal number, or null for none"}));
}

Status refuse_both_ways(const JsonConfig& config) {
  VKF_ASSIGN(bool both, config.get_bool_or("use_bidirectional_attention", false));
  if (!both) return {};
  return unsupported(message({"[use_bidirectional_attention] in ", config.where(),
                              " is true; this family runs as a causal decoder (false)"}));
}

Status read_gemma(const JsonConfig& config, DecoderConfig& block) {
  VKF_CHECK(refuse_both_ways(config));
  block.embedding.scale = static_cast<float>(std::sqrt(static_cast<double>(block.stack.width)));
  return {};
}

// Gemma 2: norms behind attention and feed-forward layer, capped scores and logits, a scale of its
// own, and windows on every other layer.
Status read_gemma2(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_gemma(config, block));
  stack.after_norm = StackConfig::AfterNorm::kYes;
  VKF_ASSIGN(stack.softcap, read_cap(config, "attn_logit_softcapping"));
  VKF_ASSIGN(block.logit_cap, read_cap(config, "final_logit_softcapping"));
  VKF_ASSIGN(double scalar, config.get_double_or("query_pre_attn_scalar", 256.0));
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    return invalid_file(message(
        {"[query_pre_attn_scalar] in ", config.where(), " is ", scalar, ", but must be above 0"}));
  }
  stack.scales = {static_cast<float>(1.0 / std::sqrt(scalar))};
  VKF_CHECK(read_layer_types(config, stack, [](int64_t i) { return i % 2 == 0; }));
  VKF_ASSIGN(int64_t window, get_size_or(config, "sliding_window", 4096, INT32_MAX));
  add_window(stack, window);
  return {};
}

using ReadRest = Status (*)(const JsonConfig& config, DecoderConfig& block);

Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files, const LlamaDefaults& defaults,
                                          const LlamaBiases& biases, ReadRest read_rest) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = defaults.family, .sentence = files.sentence};
  DecoderConfig block;
  VKF_CHECK(read_decoder_head(config, defaults.architecture, facts, block));
  VKF_CHECK(read_stack(config, defaults, block.stack));
  VKF_ASSIGN(int64_t positions, get_size_or(config, "max_position_embeddings",
                                            defaults.max_positions, kMostPositions));
  VKF_ASSIGN(RotarySetup rotary, read_rotary_setup(config, block.stack, positions));
  block.stack.rotaries = {rotary};
  if (read_rest != nullptr) VKF_CHECK(read_rest(config, block));
  VKF_ASSIGN(int64_t vocabulary, get_size_or(config, "vocab_size", 32000, kMostVocabulary));
  set_decoder_facts(block, vocabulary, stretched_positions(rotary.scaling, kMostPositions), facts);
  DecoderNames names{.prefix = "model.", .words = "embed_tokens.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", defaults.is_gemma()));
  if (tied) names.tied = DecoderNames::Tied::kYes;
  VKF_ASSIGN(GenerationFacts tokens, read_generation(config, files.generation));
  return std::unique_ptr<ModelFamily>(new Llama(std::move(facts), std::move(tokens),
                                                std::move(block), std::move(names), biases,
                                                defaults.is_gemma() ? 1.0f : 0.0f));
}

Result<std::unique_ptr<ModelFamily>> load_gemma_kind(const ModelFiles& files,
                                                     LlamaDefaults defaults, ReadRest read_rest) {
  defaults.activation = "gelu_pytorch_tanh";
  defaults.head_width = 256;
  defaults.gemma = LlamaDefaults::Gemma::kYes;
  LlamaBiases biases;
  VKF_ASSIGN(biases.qkv, files.config.get_bool_or("attention_bias", false));
  biases.out = biases.qkv;
  return load(files, defaults, biases, read_rest);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_llama(const ModelFiles& files) {
  LlamaBiases biases;
  VKF_ASSIGN(biases.qkv, files.config.get_bool_or("attention_bias", false));
  biases.out = biases.qkv;
  VKF_ASSIGN(biases.ffn, files.config.get_bool_or("mlp_bias", false));
  return load(files, {"llama", "LlamaForCausalLM", 11008, 2048}, biases, nullptr);
}

Result<std::unique_ptr<ModelFamily>> load_mistral(const ModelFiles& files) {
  return load(files, {"mistral", "MistralForCausalLM", 14336, 4096 * 32}, {}, read_mistral_window);
}

Result<std::unique_ptr<ModelFamily>> load_qwen2(const ModelFiles& files) {
  return load(files, {"qwen2", "Qwen2ForCausalLM", 22016, 32768}, {.qkv = true},
              read_qwen2_windows);
}

Result<std::unique_ptr<ModelFamily>> load_gemma(const ModelFiles& files) {
  return load_gemma_kind(files, {"gemma", "GemmaForCausalLM", 24576, 8192}, read_gemma);
}

Result<std::unique_ptr<ModelFamily>> load_gemma2(const ModelFiles& files) {
  return load_gemma_kind(files, {"gemma2", "Gemma2ForCausalLM", 9216, 8192}, read_gemma2);
}

}  // namespace vkformer
