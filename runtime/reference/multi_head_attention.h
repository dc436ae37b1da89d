// multi_head_attention: the whole block of Vaswani et al. 2017, from hidden states to hidden
// states.
//
//   q = split(x Wq^T + bq), k = split(m Wk^T + bk), v = split(m Wv^T + bv), m = memory or x
//   output = merge(attention(q, k, v)) Wo^T + bo, weights = the attention probabilities
//
// Three ways to store the projections:
//   kSeparate       Wq (H E, D), Wk and Wv (Hkv E, D)
//   kMerged         one matrix ((H + 2 Hkv) E, D), rows [q | k | v]; with Hkv = H and D = H E: (3D,
//   D) kSharedByHeads  Wq, Wk, Wv (E, E), each applied to every head of x split into heads (D = H
//   E)
// x (B, T, D), memory (B, S, D) -> output (B, T, D), weights (B, H, T, S).
// Needs: matmul, attention_weights.
#pragma once

#include "reference/attention_weights.h"

namespace vkformer::reference {

enum class ProjectionLayout : uint8_t { kSeparate, kMerged, kSharedByHeads };

// A linear layer: y = x W^T + b. N outputs, K inputs.
struct LinearWeights {
  const Array* weight = nullptr;  // (N, K)
  const Array* bias = nullptr;    // (N); absent: zeros
};

struct MultiHeadAttentionWeights {
  ProjectionLayout layout = ProjectionLayout::kSeparate;
  LinearWeights query;   // (H E, D), or (E, E) when shared; unused when merged
  LinearWeights key;     // (Hkv E, D), or (E, E) when shared; unused when merged
  LinearWeights value;   // (Hkv E, D), or (E, E) when shared; unused when merged
  LinearWeights merged;  // ((H + 2 Hkv) E, D); used only when merged
  LinearWeights output;  // (D, H E); a missing weight leaves the merged heads as they are
};

struct MultiHeadAttentionOptions {
  int64_t heads = 1;              // H
  int64_t key_heads = 0;          // Hkv; 0: H. Not with kSharedByHeads
  const Array* memory = nullptr;  // (B, S, D), what keys and values come from; absent: x
  AttentionOptions attention;     // masks, scale, bias
};

struct MultiHeadAttentionOutputs {
  Array output;   // (B, T, D)
  Array weights;  // (B, H, T, S)
  Array entropy;  // (B, H, T), nats
};

// x (B, T, D).
Result<MultiHeadAttentionOutputs> multi_head_attention(const Array& x,
                                                       const MultiHeadAttentionWeights& weights,
                                                       const MultiHeadAttentionOptions& options);

// (B, T, H E) -> (B, H, T, E). Precondition: three axes, the last a multiple of `heads`.
Array split_heads(const Array& x, int64_t heads);
// (B, H, T, E) -> (B, T, H E). Precondition: four axes.
Array merge_heads(const Array& x);

}  // namespace vkformer::reference
