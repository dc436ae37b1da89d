// What families with LLaMA's layers share. They share rotary positions, RMSNorm, grouped keys and
// values, a gated feed-forward layer without or with biases, and LLaMA's names in files.
#pragma once

#include <functional>

#include "model/blocks/named_decoder.h"
#include "model/expert_names.h"
#include "model/rope_reading.h"

namespace vkformer {

// Which linear layers have biases.
struct LlamaBiases {
  bool qkv = false;
  bool out = false;
  bool ffn = false;
};

// How files name the modules of a layer.
struct LlamaNames {
  const char* norm = "input_layernorm";
  const char* ffn_norm = "post_attention_layernorm";
  const char* attention = "self_attn";
  const char* out = "o_proj";
  const char* q_norm = "q_norm";
  const char* k_norm = "k_norm";
  const char* ffn = "mlp";
  // Of a gated feed-forward layer: the gate and the up projection, or both in one module.
  std::vector<std::string> gate_up = {"gate_proj", "up_proj"};
  const char* down = "down_proj";
  const char* final_norm = "norm";
};

// What a family differs in: the library's defaults where a key is missing, and what is set in
// stone.
struct LlamaKind {
  const char* family;
  const char* architecture;
  LlamaNames names = {};
  int64_t vocabulary = 32000;
  int64_t width = 4096;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kv_heads = 0;    // 0: as many as heads
  int64_t head_width = 0;  // 0: D / H
  int64_t ffn = 11008;
  int64_t max_positions = 2048;
  const char* epsilon_key = "rms_norm_eps";
  double epsilon = 1e-6;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  RotaryDefaults rotary = {};  // max_positions is the configuration's
  bool tied = false;           // tie_word_embeddings
  LlamaBiases biases = {};
  // Added to all gains: 1 for families whose files hold how far a gain is from 1 (Gemma).
  float gain_offset = 0.0f;
  // kFused: qkv_proj holds what are modules of their own elsewhere (Phi-3).
  enum class Projections : uint8_t { kApart, kFused } projections = Projections::kApart;
  enum class Gate : uint8_t { kNo, kYes } gate = Gate::kYes;  // kNo: c_fc and c_proj (StarCoder2)
  enum class NormBias : uint8_t { kNo, kYes } norm_bias = NormBias::kNo;
  // Norms of queries and keys, where each head has its own: kApart, in a tensor of their own too.
  enum class HeadNorms : uint8_t { kTogether, kApart } head_norms = HeadNorms::kTogether;
  double partial_rotary = 1.0;  // the part of a head that turns
  // A layer's tensor (H) of scores that join its softmax; null: none (GPT-OSS).
  const char* sinks = nullptr;
  ExpertNames experts = {};  // of families that have them
  // Adds the rows of the states of a layer under `to`, from the layer `layer`, "model.layers.3.".
  void (*add_states)(const StackConfig& stack, const std::string& to, const std::string& layer,
                     WeightTable& table) = nullptr;
  // Changes a row of a layer, whose name it has; or null.
  std::function<void(WeightRow& row)> adjust_row = {};
  std::vector<std::string> ignored = {};  // tensors of other uses (WeightTable::ignored)

  // Fills the stack's rotaries and its kinds; null: one for all layers, of all keys.
  Status (*read_positions)(const JsonConfig& config, const LlamaKind& kind, int64_t max_positions,
                           StackConfig& stack) = nullptr;
  // Reads what a family has beside: changes the block that LLaMA's keys have filled; or null.
  Status (*read_rest)(const JsonConfig& config, DecoderConfig& block) = nullptr;
};

Result<std::unique_ptr<ModelFamily>> load_llama_kind(const ModelFiles& files,
                                                     const LlamaKind& kind);

// The same in two steps, for a decoder inside a model that reads pictures.
struct LlamaParts {
  ModelFacts facts;
  DecoderConfig block;
  DecoderNames names;
  LlamaKind kind;
};
// The class is named in `outer`, all else in `config`.
Result<LlamaParts> read_llama_kind(const JsonConfig& outer, const JsonConfig& config,
                                   const LlamaKind& kind, std::shared_ptr<PicturePrompt> pictures,
                                   SentenceFacts sentence = {});
std::unique_ptr<ModelFamily> make_llama(LlamaParts parts, GenerationFacts tokens);

// The kind that a configuration's model_type names (`fallback` where there is none): llama,
// mistral, qwen2, gemma, gemma2, gemma3_text.
Result<LlamaKind> llama_kind_of(const JsonConfig& config, const std::string& fallback);
LlamaKind qwen2_kind();

// attention_bias for the four projections of attention.
Result<LlamaBiases> read_attention_biases(const JsonConfig& config);

// Rotary positions of heads of the stack, by the parameters of one object (rope_parameters, or what
// it holds for one type of layer).
Result<RotarySetup> read_llama_rotary(const JsonConfig& config, const JsonConfig& scope,
                                      const RotaryDefaults& defaults, const StackConfig& stack);

// A second kind of attention. It sees `window` keys, the query's own and those before it, with
// positions of that index in StackConfig::rotaries (-1: none).
void add_llama_window(StackConfig& stack, int64_t window, int rotary = 0);
// Which layers slide, by layer_types or, without it, as `slides` says of a layer.
Status read_layer_types(const JsonConfig& config, StackConfig& stack,
                        const std::function<bool(int64_t)>& slides);
// Mistral's windows: every layer slides where there is a sliding_window.
Status read_one_window(const JsonConfig& config, DecoderConfig& block);
// Qwen2's windows: by layer_types, or from max_window_layers on.
Status read_qwen2_windows(const JsonConfig& config, DecoderConfig& block);
// A finite number, `fallback` where the key is missing.
Result<float> read_multiplier(const JsonConfig& config, const std::string& key, double fallback);

}  // namespace vkformer
