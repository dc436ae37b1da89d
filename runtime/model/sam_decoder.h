// The mask decoder of SAM (Kirillov et al., 2023). It has tokens of prompts and features of a
// picture that attend to each other, then masks as products of tokens with enlarged features.
#pragma once

#include "model/blocks/feature_map.h"

namespace vkformer {

struct SamDecoder {
  StackConfig stack;     // width, heads, layers, ffn, epsilon and activation
  int64_t narrower = 2;  // by which the last attention of tokens to features is narrower
  int64_t masks = 3;     // that it gives; there is a token more
  int64_t quality_layers = 3;
  int64_t quality_width = 256;

  int64_t mask_tokens() const { return masks + 1; }
};

// Of a mask_decoder_config.
Result<SamDecoder> read_sam_decoder(const JsonConfig& config);
// Rows of tensors whose names begin with "mask_decoder.".
void add_sam_decoder_rows(const SamDecoder& decoder, WeightTable& table);

struct SamDecoderInputs {
  FeatureMap features;             // (B * P, grid, D)
  TensorId tokens = kNoTensor;     // (B * P, N, D), those of quality and masks first
  TensorId positions = kNoTensor;  // (grid, D), of features
};

// The outputs pred_masks (B, P, masks, 4 height, 4 width) and iou_scores (B, P, masks). Of taps
// decoder_attentions.l (B * P, H, N, N), and cross_attentions in order. Map 2l of those is of
// tokens to features (B * P, H, N, grid). Map 2l + 1 is of features to tokens (B * P, H, grid, N).
// The last one is of tokens to features.
Status add_sam_decoder(ModelBuilder& builder, const SamDecoder& decoder,
                       const SamDecoderInputs& inputs, int64_t batch, const ForwardTaps& taps);

}  // namespace vkformer
