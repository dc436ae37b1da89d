// lsh_sort: the positions of every hash round, stably sorted by their buckets. A radix sort of four
// bits a pass, linear in the tokens and always in the same order (Knuth, TAOCP 3, 5.2.5).
//
//   buckets (B, H, R, S), U32 -> order (B, H, R, S), U32
//   order[b, h, r, i] = the position whose bucket is i-th among those of round r
#pragma once

#include "ops/op.h"

namespace vkformer {

struct LshSortAttrs {
  uint32_t buckets = 1;  // of one round: round r's lie in [r * buckets, (r + 1) * buckets)
};

// The output's description, or why the input does not fit: buckets (B, H, R, S), U32.
Result<TensorDesc> check_lsh_sort(const TensorDesc& buckets, const LshSortAttrs& attrs);

// Adds the node to the graph, buckets (B, H, R, S), and returns order (B, H, R, S).
Result<TensorId> add_lsh_sort(Graph& graph, TensorId buckets, const LshSortAttrs& attrs);

Status lower_lsh_sort(LowerContext& context, const Node& node);

}  // namespace vkformer
