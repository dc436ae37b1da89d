// Which key each query may look at: the masks shared by softmax, attention and attention_weights.
// Needs: Array.
//
// Key j is allowed for query i when every given condition holds:
//   causal         j <= i + causal_offset
//   window_left    j >= i + causal_offset - window_left
//   window_right   j <= i + causal_offset + window_right
//   key_mask, mask nonzero
// A pair whose query or key is global is allowed whatever causal and the window say.
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
};

// 1 where the pair is allowed, else 0; `shape` is {B, H, T, S}, and so is the result's.
Result<Array> allowed_pairs(const Shape& shape, const MaskOptions& options, std::string_view op);

}  // namespace vkformer::reference
