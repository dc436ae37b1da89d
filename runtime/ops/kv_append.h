// kv_append: in a decoding step, writes the keys and values of every live slot's token into the
// cache, at the slot's row and the state's position; of a prompt, those of token t of item b at
// position t of the item's first row.
//
//   x (slots, any row width) or (B, P, any row width)
//     -> cache (R, C, Hkv * (E + Ev)), keys first, then values
#pragma once

#include "ops/op.h"

namespace vkformer {

struct KvAppendAttrs {
  uint32_t k_offset = 0;  // column of the keys in a row of x, in elements
  uint32_t v_offset = 0;  // column of the values in a row of x, in elements
  uint32_t k_width = 1;   // Hkv * E
  uint32_t v_width = 1;   // Hkv * Ev
  uint32_t beams = 1;     // cache rows of an item; a prompt's only
};

// Why the inputs do not fit, if they do not: x (slots, any), state (words), cache (R, C, k_width +
// v_width). A null state means a prompt: x (B, P, any).
Status check_kv_append(const TensorDesc& x, const TensorDesc* state, const TensorDesc& cache,
                       const KvAppendAttrs& attrs);

// Adds the copy from x (slots, any) into cache (R, C, k_width + v_width); state (words) is the
// DecodeState and slot rows. With kNoTensor for it, x (B, P, any) is a prompt.
Status add_kv_append(Graph& graph, TensorId x, TensorId state, TensorId cache,
                     const KvAppendAttrs& attrs);

Status lower_kv_append(LowerContext& context, const Node& node);

}  // namespace vkformer
