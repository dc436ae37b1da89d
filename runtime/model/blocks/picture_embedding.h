// What models of pictures begin with: a convolution that makes tokens of patches (Dosovitskiy et
// al., 2020), class tokens before them, and learned positions.
#pragma once

#include "model/blocks/stack.h"
#include "ops/conv_window.h"

namespace vkformer {

// Sizes in pixels, or in tokens of a grid.
struct GridSize {
  int64_t height = 0;
  int64_t width = 0;

  int64_t count() const { return height * width; }
};

// A dense convolution, and a norm where it has a name.
struct PatchConv {
  std::string rows;       // weight row of the convolution, (D, C * kernel)
  ConvWindow window;      // of the picture or the tokens of the stage before
  std::string norm;       // weight row, or empty
  float epsilon = 1e-5f;  // of the norm
};

// ViT's embedding of pictures of one size.
struct PictureEmbedding {
  GridFacts picture;
  GridSize patch;       // pixels; what does not fill a patch at the right and the bottom is omitted
  std::string patches;  // weight row of the patch projection (D, C * patch)
  std::string positions;     // weight row (T, D): what each token adds, class tokens themselves too
  int64_t class_tokens = 1;  // before the patches
  int64_t last_tokens = 0;   // after the patches

  GridSize grid() const { return {picture.height / patch.height, picture.width / patch.width}; }
  int64_t tokens() const { return class_tokens + grid().count() + last_tokens; }
};

// The height and width that a key gives as one number or two, each in [1, most].
Result<GridSize> read_grid_size(const JsonConfig& config, const std::string& key, int64_t fallback,
                                int64_t most);

// Keys of a picture's sizes and what stands in for those that are missing.
struct PictureKeys {
  const char* size = "image_size";
  GridSize picture = {224, 224};
  int64_t patch = 16;
  int64_t class_tokens = 1;
};
// Channels, size and patch of the pictures, num_channels among them; an error where a picture has
// no patch or more than positions may have. The caller names the rows.
Result<PictureEmbedding> read_picture_embedding(const JsonConfig& config, const PictureKeys& keys);

// The patches of a pass's pictures; an error where there is none or too many.
Result<GridSize> grid_of(const PictureEmbedding& embedding, const ForwardShape& shape);

// pixel_values (B, C, height, width), fed.
TensorId add_pixel_values(ModelBuilder& builder, int64_t channels, const ForwardShape& shape);

// x as `source` says -> (B, T, D), tokens row by row.
Result<TensorId> add_patch_conv(ModelBuilder& builder, TensorId x, const ConvSource& source,
                                const PatchConv& conv);

// Of `batch` pictures -> (B, T, D).
Result<TensorId> add_picture_embedding(ModelBuilder& builder, const PictureEmbedding& embedding,
                                       int64_t batch);

// Class tokens, the patches of pixel_values (B, C, height, width), a grid of `grid`, and last
// tokens -> (B, T, D). Class tokens and last tokens are rows of `table` (T, D) alone.
Result<TensorId> add_patch_tokens(ModelBuilder& builder, const PictureEmbedding& embedding,
                                  const GridSize& grid, TensorId pixels, TensorId table);

// The row `embedding.positions`: positions (T, D), to whose first rows the class tokens are added.
Result<WeightRow> position_row(const Checkpoint& checkpoint, const PictureEmbedding& embedding,
                               const std::string& positions,
                               const std::vector<std::string>& class_tokens, int64_t width);

}  // namespace vkformer
