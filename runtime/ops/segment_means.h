// segment_means: the mean of every segment of neighboring tokens, head by head: the landmarks of
// Xiong et al. 2021 (Nystroemformer). Segments of one token make it a copy into another layout.
//
//   x (B, H, S, E) -> y (B, H, M, E), each by its HeadLayout; M divides S
#pragma once

#include "ops/op.h"
#include "params/attention.h"

namespace vkformer {

struct SegmentMeansAttrs {
  uint32_t batch = 1;       // B
  uint32_t heads = 1;       // H
  uint32_t tokens = 1;      // S
  uint32_t segments = 1;    // M, a divisor of S
  uint32_t head_width = 1;  // E
  HeadLayout x{};
  HeadLayout y{};      // inside y_shape
  Shape y_shape = {};  // of B * H * M * E elements
};

// The output's description, or why the input does not fit: x (B, H, S, E) by attrs.x.
Result<TensorDesc> check_segment_means(const TensorDesc& x, const SegmentMeansAttrs& attrs);

// Adds the node to the graph and returns y, of attrs.y_shape, which holds (B, H, M, E).
Result<TensorId> add_segment_means(Graph& graph, TensorId x, const SegmentMeansAttrs& attrs);

Status lower_segment_means(LowerContext& context, const Node& node);

}  // namespace vkformer
