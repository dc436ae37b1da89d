// A family that is one bidirectional stack with heads: BERT and its kin.
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/text_embedding.h"

namespace vkformer {

struct EncoderConfig {
  TextEmbedding embedding;
  StackConfig stack;
  std::vector<HeadConfig> heads;
  std::shared_ptr<EncoderForm> form;  // what is the family's own, or null
};

// What remains to a family's own file is its configuration and weight table.
class EncoderFamily : public ModelFamily {
 public:
  EncoderFamily(ModelFacts facts, EncoderConfig block);

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 protected:
  const EncoderConfig& block() const { return block_; }
  EncoderConfig& block() { return block_; }

 private:
  ModelFacts facts_;
  GenerationFacts generation_;
  EncoderConfig block_;
};

}  // namespace vkformer
