// Nystroem attention (Xiong et al. 2021): softmax attention through landmarks, the means of
// segments of queries and keys, linear in the tokens:
//
//   y = F pinv(A) (G v),  F = softmax(q k~^T), A = softmax(q~ k~^T), G = softmax(q~ k^T + mask)
//
// F (S, M) and G (M, S) are never whole. F (W) and G v are fused attention, with k~ as keys and W =
// pinv(A) (G v) as values. pinv(A) is six steps of the iteration of Razavi et al. 2014.
#pragma once

#include "ops/attention.h"
#include "ops/inverse_start.h"

namespace vkformer {

struct NystromInputs {
  TensorId x = kNoTensor;      // holds q, k (B, H, S, E) and v (B, H, S, Ev)
  TensorId terms = kNoTensor;  // words of the key mask, as attention takes them, or absent
  TensorId ones = kNoTensor;   // (1, M), ones
};

struct NystromAttrs {
  // Sizes, layouts of q, k, v and y, and the key mask among its terms; its own sums are H = Hkv and
  // T = S.
  AttentionAttrs attention;
  uint32_t landmarks = 1;  // M, a divisor of S
  InverseStartAttrs::Maximum maximum = InverseStartAttrs::Maximum::kShared;
};

struct NystromResult {
  TensorId y = kNoTensor;         // by attention.y
  TensorId inverse = kNoTensor;   // pinv(A) (B * H, M, M)
  TensorId landmark = kNoTensor;  // k~ (B * H, M, E)
};

Result<NystromResult> add_nystrom_attention(Graph& graph, const NystromInputs& inputs,
                                            const NystromAttrs& attrs);

// F pinv(A) (B * H, S, M), on demand; `result` is what add_nystrom_attention of the same inputs and
// attributes gave.
Result<TensorId> add_nystrom_weights(Graph& graph, const NystromInputs& inputs,
                                     const NystromAttrs& attrs, const NystromResult& result);

}  // namespace vkformer
