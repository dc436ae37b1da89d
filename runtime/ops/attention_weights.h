// attention_weights: the probabilities that attention computes and does not keep, for chosen heads.
//
//   weights = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature), or the
//   scores themselves
//   q (B, H, T, E), k (B, Hkv, S, E) -> weights (B, Hsel, T, S)
//
// Unfused and on demand: models run attention, and add this for a layer somebody asks to see.
#pragma once

#include "ops/attention.h"

namespace vkformer {

struct AttentionWeightsAttrs {
  AttentionAttrs attention;  // v, value_width, y and y_shape are not used
  uint32_t first_head = 0;   // of the chosen heads
  uint32_t head_count = 0;   // Hsel; 0: all from first_head on
  enum class Result : uint8_t {
    kProbabilities,  // rows sum to 1, or are zeros where no key is allowed
    kScores,         // before the softmax, -inf where masked
  } result = Result::kProbabilities;
};

// The output's description, or why the inputs do not fit: q and k by their layouts, terms (words)
// or null.
Result<TensorDesc> check_attention_weights(const TensorDesc& q, const TensorDesc& k,
                                           const TensorDesc* terms,
                                           const AttentionWeightsAttrs& attrs);

// Adds the node and returns the weights (B, Hsel, T, S). inputs.kv needs to hold k only.
Result<TensorId> add_attention_weights(Graph& graph, const AttentionInputs& inputs,
                                       const AttentionWeightsAttrs& attrs);

Status lower_attention_weights(LowerContext& context, const Node& node);

}  // namespace vkformer
