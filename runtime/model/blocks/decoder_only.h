// A family that is one causal stack: GPT-2, LLaMA and their kin.
#pragma once

#include <optional>

#include "model/blocks/heads.h"
#include "model/blocks/picture_prompt.h"
#include "model/blocks/text_embedding.h"

namespace vkformer {

struct DecoderConfig {
  TextEmbedding embedding;
  StackConfig stack;
  // Weight row of a layer from D to the width of the embeddings, which the head reads; or empty.
  std::string projection;
  // What precedes the head, each where it has a name: a dense layer with an activation, then a
  // norm.
  std::string head_dense;
  ActivationKind head_activation = ActivationKind::kNone;
  std::string head_norm;
  std::string head;         // weight row of the output projection; empty: a bare stack
  float head_scale = 1.0f;  // multiplies the logits
  float logit_cap = 0.0f;   // c: logits become c tanh(logits / c); 0: they stay
  // Weight row of what classifies a text in place of such a projection. It reads the last token
  // that is not padding. head_dense and head_norm precede it. head_scale and logit_cap do not
  // apply. Empty: nothing classifies.
  std::string classes;
  // Token that fills rows up (pad_token_id). Absent: only the key mask says what is padding.
  std::optional<int64_t> padding;
  // What makes features of pictures, whose rows take the place of image tokens; null: tokens alone.
  std::shared_ptr<PicturePrompt> pictures;
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
  Status divide(int64_t parts, WeightTable& table) override;
  // Of a family that reads pictures (PicturePrompt).
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Result<PromptPictures> read_pictures(const TensorMap& inputs,
                                       const PromptTokens& tokens) const override;
  Result<int64_t> image_tokens(int64_t height, int64_t width) const override;
  int64_t prompt_tokens(const StepShape& shape) const override;
  Status add_prompt_words(const PromptPictures& pictures, const PromptTokens& tokens,
                          FeedWords& words) const override;

 protected:
  const DecoderConfig& block() const { return block_; }
  DecoderConfig& block() { return block_; }

 private:
  Result<TensorId> project(ModelBuilder& builder, TensorId states) const;
  HeadConfig head() const;
  Status add_classes(ModelBuilder& builder, const HeadInput& input) const;
  void add_class_words(ForwardInputs& result) const;
  // Puts the features of pictures into x (B, T, D), and what follows from them into the run.
  enum class Pass : uint8_t { kFull, kPrompt };
  Result<TensorId> splice(ModelBuilder& builder, const std::vector<int64_t>& more, Pass pass,
                          StackRun& run, TensorId x) const;
  Result<TensorId> splice_rows(ModelBuilder& builder, TensorId rows, TensorId x) const;
  Status add_words(const PromptPictures& pictures, const PromptTokens& tokens,
                   PicturePrompt::Shift shift, FeedWords& words) const;
  Status check_spans(const PromptPictures& pictures) const;
  Result<TextStates> text_states(ModelBuilder& builder, const ForwardShape& shape,
                                 const ForwardTaps& taps) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  DecoderConfig block_;
};

}  // namespace vkformer
