// What every model family provides: facts, the weight table, and graphs for whole passes.
//
// A family is model/<family>.cpp plus one row in model_list.cpp; families that differ in a switch
// share a block in model/blocks/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/json_config.h"
#include "model/model_builder.h"
#include "weights/weight_table.h"

namespace vkformer {

// What sessions and users need to know of a model before any weight is read.
struct ModelFacts {
  std::string family;
  std::string architecture;
  int64_t width = 0;           // D
  int64_t encoder_layers = 0;  // L of the encoder
  int64_t decoder_layers = 0;  // L of the decoder
  int64_t encoder_heads = 0;   // H
  int64_t decoder_heads = 0;   // H
  int64_t source_vocab = 0;    // V of the encoder's embedding
  int64_t target_vocab = 0;    // V of the logits
  int64_t max_source = 0;      // tokens
  int64_t max_target = 0;      // tokens
};

// Token-choice settings as generation_config.json and config.json give them.
struct GenerationFacts {
  std::vector<int64_t> eos;
  int64_t pad = 0;
  int64_t decoder_start = 0;
  std::optional<int64_t> forced_bos;
  std::optional<int64_t> forced_eos;
  std::vector<int64_t> suppress;        // never chosen; bad_words_ids of one token count here
  std::vector<int64_t> begin_suppress;  // not chosen first
  int64_t beams = 1;
  int64_t max_new_tokens = 0;  // 0: not stated
  int64_t min_new_tokens = 0;
  double length_penalty = 1.0;
  std::string early_stopping = "false";  // "false", "true" or "never"
};

// Which tensors a forward pass shall hand out besides the main outputs.
struct ForwardTaps {
  enum class Tap : uint8_t { kOff, kOn };
  Tap attentions = Tap::kOff;     // encoder_attentions.l, decoder_attentions.l, cross_attentions.l
  int64_t attention_layer = -1;   // only this layer; -1: all
  int64_t attention_head = -1;    // only this head; -1: all
  Tap raw_scores = Tap::kOff;     // scaled scores, -inf where masked, instead of probabilities
  Tap hidden_states = Tap::kOff;  // encoder_hidden_states.l, decoder_hidden_states.l
  Tap decoder_mask = Tap::kOff;   // bind decoder_key_mask (B, ceil(T/32)) words
};

// Sizes of a forward pass.
struct ForwardShape {
  int64_t batch = 0;   // B
  int64_t source = 0;  // S
  int64_t target = 0;  // T; 0: encoder only
};

// Capacities of a generation: what encode and step graphs are recorded for.
struct StepShape {
  int64_t batch = 0;     // B items
  int64_t beams = 0;     // rows per item
  int64_t source = 0;    // S, keys of cross-attention
  int64_t capacity = 0;  // C, positions of the key/value cache
};

class ModelFamily {
 public:
  virtual ~ModelFamily() = default;
  virtual const ModelFacts& facts() const = 0;
  virtual const GenerationFacts& generation() const = 0;
  // Rows depend on what the file holds where a head may be tied.
  virtual Result<WeightTable> weight_table(const Checkpoint& checkpoint) const = 0;

  // Full pass. Externals in: input_ids (B,S) U32, key_mask (B, ceil(S/32)) U32,
  // decoder_input_ids (B,T) U32. Externals out: encoder_last_hidden_state (B,S,D),
  // last_hidden_state (B,T,D), logits (B,T,V), and the taps.
  virtual Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                               const ForwardTaps& taps) const = 0;
  // Encoder for generation. Externals in: input_ids, key_mask; out: cross_kv.l (B,S,2D) per
  // decoder layer.
  virtual Status build_encode(ModelBuilder& builder, const StepShape& shape) const = 0;
  // One decoding step up to the logits (R,V), returned. Externals: step_ids (R) U32, key_mask,
  // cross_kv.l, self_kv.l (R,C,2D), ancestry (R,C) U32, decode_state.
  virtual Result<TensorId> build_step(ModelBuilder& builder, const StepShape& shape) const = 0;
};

// Reads config.json (and generation_config.json if present) of a model directory and makes its
// family; ErrorCode::kUnsupported names a model_type that this build does not know.
Result<std::unique_ptr<ModelFamily>> load_family(const std::string& model_dir);
// The model_type values load_family knows.
std::vector<std::string> family_names();

}  // namespace vkformer
