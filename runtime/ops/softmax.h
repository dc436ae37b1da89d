// softmax: y = softmax(x / temperature + bias) over the allowed keys of the last axis.
//
//   x (B, H, T, S), terms (words) -> y (B, H, T, S)
//
// A key that is masked, or whose score is -inf, gets exactly 0; a row without any other key is all
// zeros. A NaN or +inf makes the allowed entries of its row NaN. The largest x is taken off before
// the division, so that no temperature overflows.
#pragma once

#include "ops/op.h"
#include "ops/score_terms.h"

namespace vkformer {

struct SoftmaxAttrs {
  float temperature = 1.0f;  // divides x, not the bias; from 1e-30 to 1e30
  ScoreTermsParams terms = no_score_terms();
};

// The output's description, or why the inputs do not fit: x (B, H, T, S), terms (words), U32.
Result<TensorDesc> check_softmax(const TensorDesc& x, const TensorDesc& terms,
                                 const SoftmaxAttrs& attrs);

// Adds y = softmax(x) to the graph and returns y (B, H, T, S). `terms` is what pack_score_terms
// made (words).
Result<TensorId> add_softmax(Graph& graph, TensorId x, TensorId terms, const SoftmaxAttrs& attrs);

Status lower_softmax(LowerContext& context, const Node& node);

}  // namespace vkformer
