// latent_queries: queries of latent attention in its absorbed form, then the token's line
// (DeepSeek-AI, 2024, "DeepSeek-V2", section 2.1.2).
//
//   q (..., H E), absorbed (..., H R), line (..., r + R) -> y (..., (H + 1) (r + R)), r <= E
//
// A head of y is the first r columns of the head of q, which rotary positions turn. Then come the
// head's columns of `absorbed`: the rest of q times the matrix that would expand keys. After all
// heads follows the line, which all heads share as their key.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct LatentQueriesInputs {
  TensorId q = kNoTensor;
  TensorId absorbed = kNoTensor;
  TensorId line = kNoTensor;
};

struct LatentQueriesAttrs {
  uint32_t heads = 1;  // H
};

// The output's description, or why the inputs do not fit.
Result<TensorDesc> check_latent_queries(const TensorDesc& q, const TensorDesc& absorbed,
                                        const TensorDesc& line, const LatentQueriesAttrs& attrs);

// Adds the node and returns y.
Result<TensorId> add_latent_queries(Graph& graph, const LatentQueriesInputs& inputs,
                                    const LatentQueriesAttrs& attrs);

Status lower_latent_queries(LowerContext& context, const Node& node);

}  // namespace vkformer
