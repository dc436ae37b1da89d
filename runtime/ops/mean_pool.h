// mean_pool: y = mean of x over the kept tokens, or another vector of them (PoolKind), zeros where
// none is kept. If asked, y is then divided by max(|y|, 1e-12) (Reimers and Gurevych, 2019). Tokens
// omitted are not read, even NaN ones.
//
//   x (B, T, D), mask (B, ceil(T/32)) words -> y (B, D)
#pragma once

#include <string_view>

#include "ops/op.h"

namespace vkformer {

// The numbers that shaders/mean_pool.comp switches on; kFirst, the token at 0 whether it is kept or
// not, needs no kernel.
enum class PoolKind : uint32_t {
  kMean = 0,
  kMax = 1,             // column by column; a NaN wins
  kLast = 2,            // the last kept token
  kWeightedMean = 3,    // token t (from 0) weighs t + 1
  kMeanSqrtLength = 4,  // sum / sqrt(number of kept tokens)
  kFirst = 5,
};

// "mean", "max", "last", "weighted_mean", "mean_sqrt_length"; an error names them.
Result<PoolKind> pool_kind_from_name(std::string_view name);

struct MeanPoolAttrs {
  PoolKind kind = PoolKind::kMean;  // not kFirst
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
