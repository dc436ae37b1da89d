// deformable_attention: every query reads a few places of the images' features, around its own box
// (Zhu et al., 2021, "Deformable DETR"). Boxes are as in Zhao et al., 2024, "RT-DETR".
//
//   value (B, S, H * E), samples (B, Q, 3 * H * L * P), boxes (B, Q, 4) -> y (B, Q, H * E)
//
// S are the tokens of L grids, one grid after the other, row by row. A row of samples is [offsets
// (H, L, P, 2), x then y | scores (H, L, P)]. A box is center x, center y, width and height as
// parts of the picture.
//
//   weight = softmax of a head's scores over L and P
//   place = center + offset / P * size / 2                              parts of the picture
//   y = sum of weight * value at (place * grid - 1/2), bilinear, 0 outside the grid
#pragma once

#include <vector>

#include "ops/op.h"

namespace vkformer {

struct DeformableLevel {
  uint32_t height = 1;  // tokens
  uint32_t width = 1;   // tokens

  bool operator==(const DeformableLevel&) const = default;
};

struct DeformableAttentionAttrs {
  uint32_t heads = 1;                   // H
  uint32_t points = 1;                  // P, of each head and level
  std::vector<DeformableLevel> levels;  // L
};

struct DeformableAttentionInputs {
  TensorId value = kNoTensor;    // (B, S, H * E)
  TensorId samples = kNoTensor;  // (B, Q, 3 * H * L * P)
  TensorId boxes = kNoTensor;    // (B, Q, 4)
};

// The output's description, or why the inputs do not fit. The inputs are value (B, S, H * E),
// samples (B, Q, 3 * H * L * P), boxes (B, Q, 4).
Result<TensorDesc> check_deformable_attention(const TensorDesc& value, const TensorDesc& samples,
                                              const TensorDesc& boxes,
                                              const DeformableAttentionAttrs& attrs);

// Adds the node to the graph and returns y (B, Q, H * E).
Result<TensorId> add_deformable_attention(Graph& graph, const DeformableAttentionInputs& inputs,
                                          const DeformableAttentionAttrs& attrs);

Status lower_deformable_attention(LowerContext& context, const Node& node);

}  // namespace vkformer
