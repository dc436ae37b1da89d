// kv_append: writes keys and values into the cache. In a decoding step they are those of every live
// slot's token, at the slot's row and own position. In a prompt they are those of token t of item
// b, at position t of the item's first row. A prompt's tokens are those before the state's
// position; padding after them is not written.
//
//   x (slots, any row width) or (B, P, any row width)
//     -> cache (R, lines, Hkv * (E + Ev)), keys first, then values
//
// The cache is f32, or words of halves or bytes (ops/cache_format.h).
//
// A cache with fewer lines than positions rolls. The first `sinks` positions stay in the first
// lines. The others take turns in the rest, and a prompt leaves its last ones there.
#pragma once

#include "base/matrix_format.h"
#include "ops/op.h"

namespace vkformer {

struct KvAppendAttrs {
  uint32_t k_offset = 0;   // column of the keys in a row of x, in elements
  uint32_t v_offset = 0;   // column of the values in a row of x, in elements
  uint32_t k_width = 1;    // Hkv * E
  uint32_t v_width = 1;    // Hkv * Ev
  uint32_t beams = 1;      // cache rows of an item; a prompt's only
  uint32_t positions = 0;  // C, positions of a row; 0: the cache's lines
  uint32_t sinks = 0;      // first positions that stay; fewer than the lines
};

// Why the inputs do not fit, if they do not. The inputs are x (slots, any), or of a prompt (B, P,
// any), state (words), cache (R, lines, k_width + v_width).
Status check_kv_append(const TensorDesc& x, const TensorDesc& state, const TensorDesc& cache,
                       const KvAppendAttrs& attrs);

// Adds the copy from x (slots, any) into cache (R, lines, k_width + v_width); state (words) is the
// DecodeState and slot rows. In a graph that is no step, x (B, P, any) is a prompt.
Status add_kv_append(Graph& graph, TensorId x, TensorId state, TensorId cache,
                     const KvAppendAttrs& attrs);

// The dispatch that packs lines of `width` elements, without bindings, parameters and groups. Its
// constant 2 says that X has a row for every row of the cache. For what lowers to it as well.
Dispatch packing_dispatch(LowerContext& context, const Node& node, CacheFormat format,
                          uint32_t width);

Status lower_kv_append(LowerContext& context, const Node& node);

}  // namespace vkformer
