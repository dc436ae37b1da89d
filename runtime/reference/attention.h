// attention: softmax((softcap(scale (Q K^T + relative)) + alibi + bias) / temperature) V (Vaswani
// et al. 2017), with grouped key/value heads, relative positions, causal, sliding-window, global,
// padding and free masks. The formula, the options and the shapes are those of attention_weights;
// this keeps the output only.
// q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev) -> (B, H, T, Ev).
// Needs: attention_weights.
#pragma once

#include "reference/attention_weights.h"

namespace vkformer::reference {

// q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev) -> (B, H, T, Ev).
Result<Array> attention(const Array& q, const Array& k, const Array& v,
                        const AttentionOptions& options = {});

}  // namespace vkformer::reference
