// picture_values: pictures of 8-bit pixels as the pixel values of a vision model. Columns are
// resampled first, then rows, each rounded to bytes in fixed point. They are then cropped and
// looked up. With tables of image/picture_tables.h the same bits as image/picture_processor.h
// gives.
//
//   pixels (P), U32, 4 bytes each; tables (N), U32 -> y (B, 3, height, width)
//   byte(c) = clamp(floor((2^21 + sum_i weight_i * pixel_i(c)) / 2^22), 0, 255), twice
//   y[b, c] = value[c, byte(c)]
#pragma once

#include <vector>

#include "ops/op.h"

namespace vkformer {

// One picture among the pixels, and its words in the tables.
struct PicturePlace {
  uint32_t first_pixel = 0;
  uint32_t width = 0;         // pixels
  uint32_t height = 0;        // pixels
  uint32_t columns = 0;       // first entry of the table by target column
  uint32_t rows = 0;          // first entry of the table by target row
  bool same_columns = false;  // columns stay as they are
  bool swapped = false;       // the first byte is blue

  bool operator==(const PicturePlace&) const = default;
};

struct PictureValuesAttrs {
  uint32_t width = 0;   // of every result, pixels
  uint32_t height = 0;  // of every result, pixels
  std::vector<PicturePlace> pictures;
};

// The output's description, or which picture does not lie within pixels (P) and tables (N).
Result<TensorDesc> check_picture_values(const TensorDesc& pixels, const TensorDesc& tables,
                                        const PictureValuesAttrs& attrs);

// Adds the node to the graph, pixels (P), tables (N), and returns y (B, 3, height, width).
Result<TensorId> add_picture_values(Graph& graph, TensorId pixels, TensorId tables,
                                    const PictureValuesAttrs& attrs);

Status lower_picture_values(LowerContext& context, const Node& node);

}  // namespace vkformer
