// The embedding of tokens that text models begin with: words, positions and token types, a norm and
// a projection where a family has them.
#pragma once

#include "model/blocks/encoder_form.h"

namespace vkformer {

struct TextEmbedding {
  std::string words;  // weight row of the token embedding (V, D)
  float scale = 1.0f;
  std::string row_scales;  // feed (B, T) with a scale of each word's row, F32; or empty
  std::string positions;   // weight row (P + types, D): positions, then token types; or empty
  std::string types;  // weight row (types, D) of token types where there are no positions; or empty
  int64_t position_offset = 0;  // rows of the table before position 0
  TokenFacts tokens;
  std::string norm;        // weight row of a norm after the sum, or empty
  std::string projection;  // weight row of a layer from the embedding's width to D, or empty
  // kZero: what comes of all this is zero where the attention mask is.
  enum class Masked : uint8_t { kKept, kZero } masked = Masked::kKept;
  // Weight row of zeros (1, D) where positions are added to what the projection gives instead of to
  // the words, or empty. A lookup adds them to that row.
  std::string zeros;
};

// How a pass names what it feeds: "" for input_ids, "decoder_" for decoder_input_ids.
struct TokenFeeds {
  std::string prefix;
  // kOn: positions are fed where the model would count them.
  ForwardTaps::Tap positions = ForwardTaps::Tap::kOff;
  const EncoderForm* form = nullptr;  // what a family adds to the lookup, or null
};

struct EmbeddedTokens {
  TensorId x = kNoTensor;          // (B, T, D)
  TensorId positions = kNoTensor;  // (B, T), those of rotary layers, if fed
};

// Of a full pass or a prompt: x (B, T, D) of (B, T) tokens. Rotary models without a table of
// positions get their positions fed as well where `feeds` says so.
Result<EmbeddedTokens> add_text_embedding(ModelBuilder& builder, const StackConfig& stack,
                                          const TextEmbedding& embedding, const TokenFeeds& feeds,
                                          Shape tokens);
// x (B, T, D) with zeros where tokens are masked, by the feed `prefix`kept_rows.
Result<TensorId> hide_masked_rows(ModelBuilder& builder, const std::string& prefix, TensorId x);
// A full pass over input_ids (B, S) with their key mask: embedding and all layers. `form` is a
// family's own part of it, or null.
struct TextStates {
  TensorId states = kNoTensor;  // (B, S, D)
  TensorId mask = kNoTensor;    // key mask words
};
Result<TextStates> add_text_stack(ModelBuilder& builder, const StackConfig& stack,
                                  const TextEmbedding& embedding, const ForwardShape& shape,
                                  const ForwardTaps& taps, const EncoderForm* form = nullptr);
// Of a step: x (slots, D) of the tokens that the search chose.
Result<TensorId> add_step_embedding(ModelBuilder& builder, const StackConfig& stack,
                                    const TextEmbedding& embedding, const StepTensors& tensors);

}  // namespace vkformer
