// Families with an encoder and a decoder that attends to it (Vaswani et al., "Attention is all you
// need", 2017). The switches say what the families differ in.
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/text_embedding.h"

namespace vkformer {

struct EncoderDecoderConfig {
  TextEmbedding source;  // of the encoder, where it reads tokens
  StackConfig encoder;
  TextEmbedding target;  // of the decoder
  StackConfig decoder;
  // What precedes the head, each where it has a name: a dense layer with an activation, then a
  // norm.
  std::string head_dense;
  ActivationKind head_activation = ActivationKind::kNone;
  std::string head_norm;
  std::string head;         // weight row of the output projection; empty: bare stacks
  float head_scale = 1.0f;  // multiplies the logits before their bias
  // What a full pass calls the states of both.
  std::string memory_output = "encoder_last_hidden_state";
  std::string states_output = "last_hidden_state";
};

// What an encoder gives to cross-attention.
struct Memory {
  TensorId states = kNoTensor;  // (B, S, any)
  int64_t tokens = 0;           // S
  TensorId mask = kNoTensor;    // key mask words, or none
  // encoder_last_hidden_state (B, S, any), where a projection to `states` follows it.
  TensorId output = kNoTensor;
};

// What remains to a family's own file is its configuration and weight table; one whose encoder
// does not read tokens overrides encode and source_tokens.
class EncoderDecoderFamily : public ModelFamily {
 public:
  EncoderDecoderFamily(ModelFacts facts, GenerationFacts generation, EncoderDecoderConfig block);

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Status build_prompt(ModelBuilder& builder, const StepShape& shape) const override;
  Result<StepResult> build_step(ModelBuilder& builder, const StepShape& shape) const override;

 protected:
  const EncoderDecoderConfig& block() const { return block_; }
  EncoderDecoderConfig& block() { return block_; }

  // The encoder's output for a pass of that shape.
  virtual Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                                const ForwardTaps& taps) const;

 private:
  Result<TensorId> decode(ModelBuilder& builder, StackRun run) const;
  Result<TensorId> logits(ModelBuilder& builder, TensorId states) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  EncoderDecoderConfig block_;
};

}  // namespace vkformer
