// head_linear: a product for every head, of its columns of a row with its own matrix.
//
//   y_h = x_h W_h
//   x (..., any), W (H, K, N) packed -> y (..., H N)
//
// The columns of head h begin at first + h * stride of a row of x. Multi-head latent attention
// multiplies queries and sums of latents so (DeepSeek-AI, 2024, "DeepSeek-V2", section 2.1.2).
// Heads may share one matrix (1, K, N), as the A of a low-rank adapter of such a layer (Hu et al.,
// 2021).
#pragma once

#include "ops/experts.h"

namespace vkformer {

struct HeadLinearAttrs {
  uint32_t first = 0;    // column of head 0 in a row of x
  uint32_t stride = 0;   // columns from a head to the next
  uint32_t sharing = 0;  // heads that share the weight's one matrix; 0: each has a matrix
};

// The output's description, or why the inputs do not fit: x (..., any), the weight (H, K, N) as
// that of H experts. Heads that share a matrix have a weight (1, K, N).
Result<TensorDesc> check_head_linear(const TensorDesc& x, const ExpertWeight& weight,
                                     const HeadLinearAttrs& attrs);

// Adds the node and returns y (..., H N). W has no bias.
Result<TensorId> add_head_linear(Graph& graph, TensorId x, const ExpertWeight& weight,
                                 const HeadLinearAttrs& attrs);

Status lower_head_linear(LowerContext& context, const Node& node);

}  // namespace vkformer
