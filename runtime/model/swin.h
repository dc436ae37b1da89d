// Swin (Liu et al., 2021). It has attention inside windows that shift from block to block, and
// stages that halve the grid of tokens and double their width. Models that have such an encoder in
// them use SwinEncoder as well.
#pragma once

#include "model/blocks/picture_layers.h"
#include "model/blocks/shifted_windows.h"
#include "model/config_reading.h"

namespace vkformer {

class SwinEncoder {
 public:
  struct Config {
    std::string rows;             // prefix of its weight rows
    std::string taps;             // prefix of its outputs
    PictureEmbedding embedding;   // class_tokens 0; `positions` empty: none
    std::vector<int64_t> depths;  // blocks by stage
    std::vector<int64_t> heads;   // H by stage
    std::vector<int64_t> ffn;     // F by stage
    int64_t width = 0;            // D of the first stage
    int64_t window = 0;           // tokens a side
    ProjectionBias bias = ProjectionBias::kYes;
    StackConfig layers;  // epsilon and activation

    int64_t stages() const { return static_cast<int64_t>(depths.size()); }
    int64_t depth(int64_t stage) const { return depths[static_cast<size_t>(stage)]; }
    int64_t stage_heads(int64_t stage) const { return heads[static_cast<size_t>(stage)]; }
    int64_t stage_width(int64_t stage) const { return width << stage; }
    // D of the last stage.
    int64_t out_width() const { return stage_width(stages() - 1); }
    // Tokens of the last stage of such a picture, in pixels.
    int64_t tokens(int64_t height, int64_t width_in_pixels) const;
  };

  // Of a model's configuration, or of one that is nested in it.
  static Result<Config> read(const JsonConfig& config, const std::string& rows,
                             const std::string& taps);

  explicit SwinEncoder(Config config) : config_(std::move(config)) {}

  const Config& config() const { return config_; }
  // Reads the biases of windows from tensors whose names begin with `prefix` ("swin.", or empty).
  Status prepare(const Checkpoint& checkpoint, const std::string& prefix);
  // Rows of patches, blocks and merging, and what to ignore.
  Status add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                  WeightTable& table) const;
  // pixel_values -> (B, T, D) of the last stage, without a norm; marks the taps.
  Result<TensorId> build(ModelBuilder& builder, const ForwardShape& shape,
                         const ForwardTaps& taps) const;

 private:
  struct BlockSite;

  std::string block_rows(int64_t stage, int64_t block) const;
  std::string merge_name(int64_t stage) const;
  Result<TensorId> embed(ModelBuilder& b, const ForwardShape& shape, const GridSize& grid) const;
  Result<WindowGrid> grid_of(const GridSize& tokens, int64_t stage, int64_t block) const;
  Result<TensorId> attend(const BlockSite& site, TensorId windows) const;
  Result<TensorId> add_block(const BlockSite& site, TensorId x) const;
  Result<TensorId> merge(ModelBuilder& b, TensorId x, const GridSize& tokens, int64_t stage) const;

  Config config_;
  std::vector<uint32_t> index_;                          // (window^2, window^2)
  std::vector<std::vector<std::vector<float>>> tables_;  // by stage and block
};

}  // namespace vkformer
