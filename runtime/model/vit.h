// ViT (Dosovitskiy et al., 2020): patches of a picture as tokens of a pre-norm stack, with a class
// token before them. DeiT (Touvron et al., 2020) has one token more.
//
// read_vit_encoder and add_vit_rows serve models that have such an encoder in them as well:
// add_picture_embedding(builder, encoder.picture, batch), then add_stack(builder, encoder.stack).
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/picture_embedding.h"
#include "model/blocks/picture_layers.h"

namespace vkformer {

struct VitEncoder {
  PictureEmbedding picture;
  StackConfig stack;
  ProjectionBias bias = ProjectionBias::kYes;
  // LayerScale's tensors of a layer, or empty.
  std::string attention_scale = {};
  std::string ffn_scale = {};
  int64_t pooled = 0;  // columns of the pooler, where there is one
};

// Tokens before the patches: the class's, and DeiT's second one for what a teacher says.
inline constexpr int64_t kVitTokens = 1;
inline constexpr int64_t kDeitTokens = 2;

// The encoder that a configuration (of a model, or nested in one) describes; its weight rows begin
// with `rows`, its outputs with `taps`.
Result<VitEncoder> read_vit_encoder(const JsonConfig& config, const PictureKeys& keys,
                                    const std::string& rows, const std::string& taps);

// What the names of its layers begin with, before their number.
std::string vit_layers(const Checkpoint& checkpoint, const std::string& prefix);
// The rows of its patches, layers and last norm if it has one, from tensors whose names begin with
// `prefix`
// ("vit.", or empty).
void add_vit_layer_rows(WeightTable& table, const Checkpoint& checkpoint, const VitEncoder& encoder,
                        const std::string& prefix);
// Those and the row of positions, and what files hold beside them: a mask token, and the pooler
// unless a row takes it.
Status add_vit_rows(WeightTable& table, const Checkpoint& checkpoint, const VitEncoder& encoder,
                    const std::string& prefix);

// One of these encoders with heads.
class VitFamily : public ModelFamily {
 public:
  VitFamily(ModelFacts facts, VitEncoder encoder, std::vector<HeadConfig> heads);

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  void add_head_rows(WeightTable& table, const Checkpoint& checkpoint,
                     const std::string& prefix) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  VitEncoder encoder_;
  std::vector<HeadConfig> heads_;
};

// Facts and heads from the configuration: a pooler, one classifier or a teacher's beside it.
Result<std::unique_ptr<ModelFamily>> load_vit_family(const JsonConfig& config,
                                                     int64_t class_tokens);

}  // namespace vkformer
