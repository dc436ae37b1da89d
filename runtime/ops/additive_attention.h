// additive_attention: attention of one head whose scores are no scaled product of queries and keys:
// the alignment models of recurrent translation (Bahdanau et al. 2014; Luong et al. 2015).
//
//   q (R, A) and perhaps a center, kv (B, S, line), aux (words) -> y (R, C + S): [context |
//   weights]
//
//   additive:  score(j) = v . tanh(q + k_j)
//   dot:       score(j) = q . k_j
//   location:  score(j) = q[position of j in its sentence]; -inf where q has no such column
//   weights = softmax over the allowed keys of score / temperature; context = sum_j weights_j
//   value_j
//
// A row of kv begins with its key (A) and ends with its value (C); the two may overlap. Real tokens
// count from 0, wherever padding is. A window keeps the keys at most D tokens from its center. With
// local-m the center is the query's own position. With local-p it is S' q[A], where S' is the count
// of real tokens. The weights are then multiplied by exp(-(j - center)^2 / (2 (D / 2)^2)). Without
// an allowed key, the row is zeros.
#pragma once

#include "ops/op.h"
#include "params/recurrent.h"

namespace vkformer {

struct AdditiveAttentionAttrs {
  enum class Score : uint8_t { kAdditive, kDot, kLocation } score = Score::kAdditive;
  enum class Window : uint8_t { kNone, kMonotonic, kPredictive } window = Window::kNone;
  // kScores: the last S columns are scores, -inf where masked, and there is no context.
  enum class Result : uint8_t { kWeights, kScores } result = Result::kWeights;
  uint32_t width = 1;        // A, columns of q
  uint32_t value_width = 1;  // C
  uint32_t reach = 0;        // D, tokens; at least 1 where there is a window
  uint32_t queries = 1;      // T of an item; in a step, rows of an item
  uint32_t first = 0;        // position of an item's first query; a step's own comes from its state
  uint32_t v_offset = 0;     // where v (A) lies in aux, in words; additive scores only
  bool masked = false;       // aux begins with a key mask
  float temperature = 1.0f;  // divides the scores before the softmax; above 0
};

struct AdditiveAttentionInputs {
  TensorId q = kNoTensor;      // (B, T, A), or with a center (B, T, A + 1); in a step (slots, ...)
  TensorId kv = kNoTensor;     // (B, S, line)
  TensorId aux = kNoTensor;    // key mask (B, ceil(S/32)), then v (A), U32; or none
  TensorId state = kNoTensor;  // DecodeState and slot rows (words), U32, in a step
};

// y's description, or why the inputs do not fit: q (R, A or A + 1), kv (B, S, line), aux (words) or
// null.
Result<TensorDesc> check_additive_attention(const TensorDesc& q, const TensorDesc& kv,
                                            const TensorDesc* aux,
                                            const AdditiveAttentionAttrs& attrs);
// Adds the node and returns y (B, T, C + S), or (slots, C + S) in a step.
Result<TensorId> add_additive_attention(Graph& graph, const AdditiveAttentionInputs& inputs,
                                        const AdditiveAttentionAttrs& attrs);

Status lower_additive_attention(LowerContext& context, const Node& node);

}  // namespace vkformer
