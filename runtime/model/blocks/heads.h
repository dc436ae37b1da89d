// What stands on a stack's final states: language, classification and span heads, poolers and
// sentence embeddings.
#pragma once

#include "model/blocks/stack.h"

namespace vkformer {

// activation(dense x), norm, mean, output; each where it has a name or is wished.
struct HeadConfig {
  // Which states it reads. kAll: (B, T, D). The others give (B, D): one token, the last unmasked
  // one, the mean of the unmasked ones, or the mean of all from `token` on.
  enum class Input : uint8_t { kAll, kToken, kLast, kMaskedMean, kMean } input = Input::kAll;
  int64_t token = 0;                                  // of kToken and kMean
  std::string input_norm;                             // weight row of a norm before all, or empty
  std::string dense;                                  // weight row, or empty
  ActivationKind activation = ActivationKind::kNone;  // of dense
  std::string norm;                                   // weight row, or empty
  // kMasked: of the tokens that the key mask keeps; the head before it runs for all of them.
  enum class LateMean : uint8_t { kNo, kMasked } late_mean = LateMean::kNo;
  std::string output;           // weight row, or empty
  float scale = 1.0f;           // multiplies the output
  float cap = 0.0f;             // c: c tanh(output / c); 0: none
  std::string name = "logits";  // of the tensor that is handed out
  // kYes: an output of one column loses that axis.
  enum class Squeeze : uint8_t { kNo, kYes } squeeze = Squeeze::kNo;
};

// The states (B, T, D) that heads read, and the key mask (B, ceil(T/32)) of kLast and kMaskedMean.
struct HeadInput {
  TensorId states = kNoTensor;
  TensorId mask = kNoTensor;
};

// Adds the head's layers from `dense` on to states that are selected already; returns the result,
// which it does not hand out.
Result<TensorId> add_head_layers(ModelBuilder& builder, const StackConfig& stack,
                                 const HeadConfig& head, const HeadInput& selected);
// Adds the head and hands its output out under its name; returns it.
Result<TensorId> add_head(ModelBuilder& builder, const StackConfig& stack, const HeadConfig& head,
                          const HeadInput& input);
Status add_heads(ModelBuilder& builder, const StackConfig& stack,
                 const std::vector<HeadConfig>& heads, const HeadInput& input);

// Vectors of length 1: x (B, D), which becomes (B, 1, D) -> (B, D).
Result<TensorId> add_unit_rows(ModelBuilder& builder, TensorId x);

// One token's states: (B, T, D) -> (B, D).
Result<TensorId> add_token_states(ModelBuilder& builder, TensorId states, int64_t token);

// sentence_embedding (B, E), as the modules of sentence-transformers make it of the states; nothing
// where there are none. The tokens that count are the key mask's, or the fed pooling_mask's.
Status add_sentence_embedding(ModelBuilder& builder, const SentenceFacts& sentence,
                              const ForwardTaps& taps, const HeadInput& input);

}  // namespace vkformer
