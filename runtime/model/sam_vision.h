// The picture encoder of SAM (Kirillov et al., 2023; Li et al., 2022). It is a ViT with decomposed
// relative positions, and a neck of convolutions. Its layers attend inside windows, but for a few
// that see all. Pictures have one size.
#pragma once

#include "model/blocks/feature_map.h"
#include "model/blocks/shifted_windows.h"

namespace vkformer {

class SamVision {
 public:
  struct Config {
    StackConfig stack;            // sizes, epsilon and activation of the layers
    PictureEmbedding embedding;   // class_tokens 0; `positions` empty: none
    int64_t window = 14;          // tokens a side; 0: all layers see all
    std::vector<int64_t> global;  // layers that see all
    bool bias = true;             // of queries, keys and values
    bool distances = true;        // relative positions
    int64_t channels = 256;       // of the features
  };

  // Of a vision_config.
  static Result<Config> read(const JsonConfig& config);

  explicit SamVision(Config config) : c_(std::move(config)) {}

  const Config& config() const { return c_; }
  // Rows of tensors whose names begin with `prefix` ("vision_encoder.").
  Status add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                  WeightTable& table) const;
  // pixel_values -> features (B, grid, channels). The taps are encoder_hidden_states.l (B, grid, D)
  // and encoder_attentions.l. A layer that sees all has a map (B, H, grid, grid). Another has
  // (B * windows, H, area, area), windows row by row.
  Result<FeatureMap> build(ModelBuilder& builder, const ForwardShape& shape,
                           const ForwardTaps& taps) const;

 private:
  bool sees_all(int64_t layer) const;
  // The grid that a layer attends over.
  WindowGrid windows_of(int64_t layer) const;
  Result<TensorId> attend(ModelBuilder& b, const ForwardTaps& taps, int64_t layer,
                          TensorId h) const;
  Result<TensorId> add_layer(ModelBuilder& b, const ForwardTaps& taps, int64_t layer,
                             TensorId x) const;

  Config c_;
};

}  // namespace vkformer
