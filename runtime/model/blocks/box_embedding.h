// Embeddings of where tokens are on a page, as LayoutLM (Xu et al., 2019) has them. Of a token's
// box (left, top, right, bottom) the two x's, the two y's, the height and the width each look up a
// row.
#pragma once

#include "model/model.h"
#include "model/model_builder.h"

namespace vkformer {

struct BoxEmbedding {
  int64_t positions = 1024;  // P: coordinates and sizes are 0 to P - 1
  int64_t corner_width = 0;  // C: columns of a coordinate's row
  int64_t size_width = 0;    // columns of a height's or width's row
  // kClamp: a size outside the table takes the nearest row, as LayoutLMv3 does; kRefuse: an error.
  enum class Sizes : uint8_t { kRefuse, kClamp } sizes = Sizes::kRefuse;
};

// Rows "boxes.corners" (2 P, C), x's then y's, and "boxes.sizes" (2 P, size_width), heights then
// widths; names in the file begin with `prefix`.
void add_box_rows(const BoxEmbedding& boxes, const std::string& prefix, WeightTable& table);

// Turns the input `bbox` (B, S, 4) of tokens (B, S) into the words box_corners (B, S, 4) and
// box_sizes (B, S, 2). They are indices of those rows, and zeros where it is absent.
Status read_boxes(const BoxEmbedding& boxes, const TensorMap& inputs, ForwardInputs& result);

struct BoxParts {
  TensorId corners = kNoTensor;  // (B, S, 4, C): left, top, right, bottom
  TensorId sizes = kNoTensor;    // (B, S, 2, size_width): height, width
};
Result<BoxParts> add_box_lookups(ModelBuilder& builder, int64_t batch, int64_t tokens);

// x (B, S, D) and all six rows of each token, which are D wide -> (B, S, D).
Result<TensorId> add_boxes(ModelBuilder& builder, TensorId x);

}  // namespace vkformer
