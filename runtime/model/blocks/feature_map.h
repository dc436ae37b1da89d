// Features of a picture as rows of tokens, and what convolutional parts of models do with them.
#pragma once

#include "model/blocks/picture_embedding.h"

namespace vkformer {

// Features (B, height * width, C), row by row.
struct FeatureMap {
  TensorId states = kNoTensor;
  GridSize grid;
};

// A dense convolution, padded by half its kernel. Its weight row `row` is (C, in * kernel^2).
struct FeatureConv {
  std::string row;
  int64_t kernel = 1;
  int64_t stride = 1;
};

// A transposed convolution whose windows do not overlap: every pixel becomes a square of `factor` x
// `factor` pixels. Its weight rows are `row` and `row`.bias.
struct FeatureEnlargement {
  std::string row;
  int64_t factor = 2;
  int64_t channels = 0;  // of the result
};

// The grid that such a window leaves.
GridSize grid_after(const GridSize& grid, int64_t kernel, int64_t stride);

// How operators find the pixels of features.
ConvSource feature_source(const GridSize& grid);
ConvWindow feature_window(int64_t kernel, int64_t stride);

// Windows as rows, then a linear layer with `attrs`.
Result<FeatureMap> add_feature_conv(ModelBuilder& builder, const FeatureConv& conv,
                                    const FeatureMap& x, const LinearAttrs& attrs = {});

// Rows of a module whose weight is (in, channels, factor, factor).
void add_enlarging_rows(const FeatureEnlargement& enlargement, const std::string& module,
                        int64_t in, WeightTable& table);
Result<FeatureMap> add_enlarged(ModelBuilder& builder, const FeatureEnlargement& enlargement,
                                const FeatureMap& x);

}  // namespace vkformer
