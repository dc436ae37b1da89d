// lsh_hash: the bucket of every vector under random rotations (angular locality-sensitive hashing:
// Andoni et al. 2015; Kitaev, Kaiser and Levskaya 2020), as numbers that differ from round to
// round.
//
//   x (B, H, S, E), rotations (H, E, R, C), mask (B, ceil(S/32)) words -> buckets (B, H, R, S), U32
//   bucket = argmax [x R | -x R], the first index on ties, + r * (buckets of a round)
//
// The number of buckets may be a product of factors. Each has its share of the C columns, half as
// many as it is large. Then bucket = bucket0 + factor0 * (bucket1 + factor1 * ...). With a mask
// there is one bucket more in every round, for the tokens that it omits.
#pragma once

#include <vector>

#include "ops/op.h"
#include "params/attention.h"

namespace vkformer {

struct LshHashAttrs {
  uint32_t batch = 1;       // B
  uint32_t heads = 1;       // H
  uint32_t tokens = 1;      // S
  uint32_t head_width = 1;  // E
  uint32_t rounds = 1;      // R
  HeadLayout x{};
  // kNone: every round's buckets begin at 0, as the plain definition has it.
  enum class Offsets : uint8_t { kRounds, kNone } offsets = Offsets::kRounds;
  std::vector<uint32_t> factors;  // of the number of buckets; each even, at most 4 of them
};

struct LshHashInputs {
  TensorId x = kNoTensor;          // (B, H, S, E) by attrs.x
  TensorId rotations = kNoTensor;  // (H, E, R, C)
  TensorId mask = kNoTensor;       // (B, ceil(S/32)) words, or absent
};

// Buckets of one round without the masked tokens' own, or why the factors cannot be.
Result<uint32_t> count_buckets(const std::vector<uint32_t>& factors);

// The output's description, or why the inputs do not fit: x (B, H, S, E) by attrs.x, rotations
// (H, E, R, C).
Result<TensorDesc> check_lsh_hash(const TensorDesc& x, const TensorDesc& rotations,
                                  const LshHashAttrs& attrs);

// Adds the node to the graph and returns the buckets (B, H, R, S), U32.
Result<TensorId> add_lsh_hash(Graph& graph, const LshHashInputs& inputs, const LshHashAttrs& attrs);

Status lower_lsh_hash(LowerContext& context, const Node& node);

}  // namespace vkformer
