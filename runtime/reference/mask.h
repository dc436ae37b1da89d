// Which key each query may look at: the masks shared by softmax, attention and attention_weights.
// Needs: Array.
//
// Key j is allowed for query i when every given condition holds:
//   causal         j <= i + causal_offset
//   window_left    j >= i + causal_offset - window_left
//   window_right   j <= i + causal_offset + window_right
//   key_mask, mask nonzero
//   documents      query and key belong to the same one
//   block_map      the block of the key counts for the block of the query
// A pair whose query or key is global, or whose key belongs to the prefix, is allowed whatever
// causal and the window say. A key that counts n times has n times the weight.
#pragma once

#include <optional>

#include "reference/array.h"

namespace vkformer::reference {

struct MaskOptions {
  bool causal = false;
  int64_t causal_offset = 0;            // key position of query 0, in tokens
  std::optional<int64_t> window_left;   // tokens before the query's own key position
  std::optional<int64_t> window_right;  // tokens after it
  const Array* key_mask = nullptr;      // (B, S), 1 = allowed
  const Array* mask = nullptr;          // broadcast to (B, H, T, S), 1 = allowed
  const Array* global = nullptr;        // (B, S), 1 = global; needs T = S
  const Array* documents = nullptr;     // (B, S), the number of a token's document; needs T = S
  const Array* prefix = nullptr;        // (B), keys from the first on
  const Array* block_map = nullptr;     // (B|1, H|1, T/block_size, S/block_size), how often
  int64_t block_size = 1;               // tokens; divides T and S
};

// 1 where the pair is allowed, else 0; `shape` is {B, H, T, S}, and so is the result's.
Result<Array> allowed_pairs(const Shape& shape, const MaskOptions& options, std::string_view op);

// How often pair `at` of the flattened (B, H, T, S) counts; 1 without a block map. Only after
// allowed_pairs has checked the options.
double pair_count(const Shape& shape, const MaskOptions& options, int64_t at);

}  // namespace vkformer::reference
