// The 2017 encoder-decoder Transformer (Vaswani et al., "Attention is all you need") with the
// switches that its families differ in. Marian and the plain `transformer` family are thin readers
// of this block's configuration.
#pragma once

#include "model/model.h"

namespace vkformer {

// One stack, encoder or decoder.
struct StackConfig {
  int64_t layers = 0;
  int64_t heads = 0;      // H
  int64_t ffn = 0;        // F
  std::string embedding;  // weight row of the token embedding (V, D)
  float embedding_scale = 1.0f;
  enum class FinalNorm : uint8_t { kNo, kYes } final_norm = FinalNorm::kNo;
};

struct EncoderDecoderConfig {
  int64_t width = 0;  // D
  StackConfig encoder;
  StackConfig decoder;
  enum class NormOrder : uint8_t { kPost, kPre } norm_order = NormOrder::kPost;
  ActivationKind activation = ActivationKind::kRelu;
  float epsilon = 1e-5f;
  std::string head;  // weight row of the output projection
};

// A family of this shape: what remains to a family's own file is its configuration and weight
// table. The weight rows that the graphs ask for, per layer i:
//   encoder.i.self.qkv, .self.out, .self.norm, .ffn.up, .ffn.down, .ffn.norm
//   decoder.i.self.*, decoder.i.cross.q, .cross.kv, .cross.out, .cross.norm, .ffn.*
// and positions (table), the embeddings, the head, encoder.norm and decoder.norm (final norms).
class EncoderDecoderFamily : public ModelFamily {
 public:
  EncoderDecoderFamily(ModelFacts facts, GenerationFacts generation, EncoderDecoderConfig block);

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;
  Status build_encode(ModelBuilder& builder, const StepShape& shape) const override;
  Result<TensorId> build_step(ModelBuilder& builder, const StepShape& shape) const override;

 protected:
  const EncoderDecoderConfig& block() const { return block_; }

 private:
  ModelFacts facts_;
  GenerationFacts generation_;
  EncoderDecoderConfig block_;
};

}  // namespace vkformer
