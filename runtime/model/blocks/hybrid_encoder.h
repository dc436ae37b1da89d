// RT-DETR's hybrid encoder (Zhao et al., 2024). It has Transformer layers over the smallest
// features, then convolutions that fuse the features of all sizes, from the smallest to the largest
// and back.
#pragma once

#include "model/blocks/feature_map.h"

namespace vkformer {

struct HybridEncoder {
  StackConfig stack;              // of one size; its rows and outputs go on with the next
  std::vector<size_t> attending;  // the features that go through such layers
  bool placed = true;             // whether queries and keys see sine positions
  double temperature = 10000.0;   // of those
  std::vector<int64_t> channels;  // of the features that it reads, from the largest to the smallest
  int64_t inner = 0;              // channels of the fusing convolutions
  ActivationKind activation = ActivationKind::kSilu;  // of these
  float epsilon = 1e-5f;                              // of their batch norms

  size_t levels() const { return channels.size(); }
};

// Rows of tensors whose names begin with `prefix` ("model."): input projections and the encoder.
void add_hybrid_rows(const HybridEncoder& encoder, const Checkpoint& checkpoint,
                     const std::string& prefix, WeightTable& table);

// Features (B, S_l, C_l) of the backbone -> (B, S_l, D) of the same sizes. An error where a size is
// not twice the next.
Result<std::vector<FeatureMap>> add_hybrid_encoder(ModelBuilder& builder,
                                                   const HybridEncoder& encoder,
                                                   const std::vector<FeatureMap>& features,
                                                   const ForwardTaps& taps);

// A module that files have had under one name, and which version 5 of the library has renamed.
std::string renamed_module(const Checkpoint& checkpoint, const std::string& old,
                           const std::string& now);

}  // namespace vkformer
