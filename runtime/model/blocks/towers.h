// What models that compare pictures with texts have. These are a tower for each, CLIP's (Radford et
// al., 2021) or SigLIP's (Zhai et al., 2023). They share the names of their tensors.
#pragma once

#include "model/blocks/heads.h"
#include "model/blocks/picture_patches.h"
#include "model/blocks/text_embedding.h"

namespace vkformer {

// Texts: a pre-norm stack, whose weight rows begin with "text".
struct TextTower {
  TextEmbedding embedding;
  StackConfig stack;
  int64_t vocabulary = 0;
  int64_t tokens = 0;  // at most
  // Which token stands for the text. It is the first end token (the first token of a text without
  // one), that of the highest id, or the last one.
  enum class Pool : uint8_t { kEndToken, kHighestId, kLast } pool = Pool::kEndToken;
  int64_t end = -1;  // of kEndToken
  // Columns of a linear layer after that; 0: none. `head` is its module in files.
  int64_t projection = 0;
  std::string head;
  enum class HeadBias : uint8_t { kNo, kYes } head_bias = HeadBias::kNo;

  // Rows, of tensors whose names begin with `prefix` ("text_model.", or empty).
  void add_rows(const std::string& prefix, WeightTable& table) const;
  // Where the token that stands for each text is, among all B S tokens of ids (B, S).
  std::vector<uint32_t> pooled_rows(std::span<const uint32_t> ids, int64_t batch) const;
  // States (B, S, D), of texts that `input_ids` and `key_mask` feed.
  Result<TensorId> states(ModelBuilder& builder, int64_t batch, int64_t tokens,
                          const ForwardTaps& taps) const;
  // states -> (B, D), by the fed `pooled_tokens`.
  Result<TensorId> pooled(ModelBuilder& builder, TensorId states) const;
  Result<TensorId> projected(ModelBuilder& builder, TensorId pooled) const;
};

// The pictures of a pass.
struct GivenPictures {
  int64_t batch = 0;    // B
  int64_t patches = 0;  // of each row where pictures come in patches (PictureTower::Input)
  bool cut = false;     // such patches were cut out of whole pictures (PatchRows)
};

// Pictures: a pre-norm stack over patches, whose weight rows begin with "picture".
struct PictureTower {
  PictureEmbedding embedding;
  // kPictures: pixel_values are pictures of one size. kPatches: patches of pictures of any
  // proportions (picture_patches.h), where `embedding` says how many positions the file has.
  enum class Input : uint8_t { kPictures, kPatches } input = Input::kPictures;
  PictureTokens positions;  // of kPatches, once prepared
  StackConfig stack;        // without a final norm
  // kClass: a token before the patches stands for the picture, with its own norm. The sum has one,
  // too. kAttention: the normed states by attention of a learned query. kNone: nothing does, and a
  // decoder reads the states (`layer_states`).
  enum class Pool : uint8_t { kClass, kAttention, kNone } pool = Pool::kClass;
  // Whether states are normed after the last layer.
  enum class LastNorm : uint8_t { kNo, kYes } last_norm = LastNorm::kNo;
  // Of kNone: all layers of the file, of which the stack's are the first.
  int64_t file_layers = 0;
  int64_t projection = 0;  // columns of a linear layer after that, without bias; 0: none
  std::string head;        // its module in files

  // Reads what kPatches keeps on the host, of tensors whose names begin with `prefix`.
  Status prepare(const Checkpoint& checkpoint, const std::string& prefix);
  // Rows, of tensors whose names begin with `prefix` ("vision_model.", or empty).
  Status add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                  WeightTable& table) const;
  // States (B, T, D).
  Result<TensorId> states(ModelBuilder& builder, const GivenPictures& given,
                          const ForwardTaps& taps) const;
  // The states (B, T, D) after each of these numbers of layers, without a norm where those are not
  // all of the file's. 0: what the first layer reads.
  Result<std::vector<TensorId>> layer_states(ModelBuilder& builder, int64_t batch,
                                             const std::vector<int64_t>& layers) const;
  // states -> (B, D).
  Result<TensorId> pooled(ModelBuilder& builder, TensorId states) const;
  Result<TensorId> projected(ModelBuilder& builder, TensorId pooled) const;

 private:
  // Of a row of the batch.
  int64_t tokens(const GivenPictures& given) const {
    return given.patches > 0 ? given.patches : embedding.tokens();
  }
  // What the first layer reads.
  Result<TensorId> embedded(ModelBuilder& builder, const GivenPictures& given) const;
};

// CLIP's or SigLIP's picture tower as a configuration describes it, by its model_type
// (clip_vision_model, siglip_vision_model; `fallback` where there is none), without pooling.
Result<PictureTower> read_state_tower(const JsonConfig& config, const std::string& fallback);

// A family of one tower. `outputs` of a text tower: pooler_output, and text_embeds where there is a
// projection; of a picture tower image_embeds.
struct TowerFacts {
  ModelFacts facts;
  // kPooled: what the projection gives is the pooler_output (SigLIP's texts).
  enum class Projected : uint8_t { kApart, kPooled } projected = Projected::kApart;
};
std::unique_ptr<ModelFamily> make_text_tower(TowerFacts facts, TextTower tower);
std::unique_ptr<ModelFamily> make_picture_tower(TowerFacts facts, PictureTower tower);

// Both towers: text_embeds and image_embeds of length 1. Where both are given also logits_per_image
// and logits_per_text: their products times exp(logit_scale), plus logit_bias where there is one.
struct TowerPair {
  TextTower text;
  PictureTower picture;
  Shape scale_shape;  // of logit_scale in files
  enum class Bias : uint8_t { kNo, kYes } bias = Bias::kNo;
};
std::unique_ptr<ModelFamily> make_tower_pair(ModelFacts facts, TowerPair pair);

}  // namespace vkformer
