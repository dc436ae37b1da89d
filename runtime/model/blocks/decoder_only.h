// A family that is one causal stack: GPT-2, LLaMA and their kin.
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/text_embedding.h"

namespace vkformer {

struct DecoderConfig {
  TextEmbedding embedding;
  StackConfig stack;
  // Weight row of a layer from D to the width of the embeddings, which the head reads; or empty.
  std::string projection;
  // What stands in front of the head, each where it has a name: a dense layer with an activation,
  // then a norm.
  std::string head_dense;
  ActivationKind head_activation = ActivationKind::kNone;
  std::string head_norm;
  std::string head;         // weight row of the output projection; empty: a bare stack
  float head_scale = 1.0f;  // multiplies the logits
  float logit_cap = 0.0f;   // c: logits become c tanh(logits / c); 0: they stay
};

// What remains to a family's own file is its configuration and weight table.
class DecoderFamily : public ModelFamily {
 public:
  DecoderFamily(ModelFacts facts, GenerationFacts generation, DecoderConfig block);

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Status build_prompt(ModelBuilder& builder, const StepShape& shape) const override;
  Result<StepResult> build_step(ModelBuilder& builder, const StepShape& shape) const override;

 protected:
  const DecoderConfig& block() const { return block_; }
  DecoderConfig& block() { return block_; }

 private:
  Result<TensorId> project(ModelBuilder& builder, TensorId states) const;
  HeadConfig head() const;

  ModelFacts facts_;
  GenerationFacts generation_;
  DecoderConfig block_;
};

}  // namespace vkformer
