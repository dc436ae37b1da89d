// mean_pool: y = mean of x over the kept tokens, zeros where none is kept; then, if asked, y
// divided by max(|y|, 1e-12) (Reimers and Gurevych, 2019). Tokens left out are not read, even NaN
// ones.
//
//   x (B, T, D), mask (B, ceil(T/32)) words -> y (B, D)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct MeanPoolAttrs {
  enum class Normalize : uint8_t { kOff, kOn } normalize = Normalize::kOff;
};

// The output's description, or why the input does not fit: x (B, T, D).
Result<TensorDesc> check_mean_pool(const TensorDesc& x);
// Does the mask fit? x (B, T, D), mask (B, ceil(T/32)), U32.
Status check_mean_pool_mask(const TensorDesc& x, const TensorDesc& mask);

// Adds y = mean_pool(x) to the graph and returns y (B, D). `mask` holds words of 32 tokens, bit
// t % 32 of word t / 32 set = token t kept (pack_key_mask), or is kNoTensor: all are kept.
Result<TensorId> add_mean_pool(Graph& graph, TensorId x, TensorId mask, MeanPoolAttrs attrs);

Status lower_mean_pool(LowerContext& context, const Node& node);

}  // namespace vkformer
