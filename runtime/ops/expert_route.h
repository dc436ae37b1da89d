// expert_route: which experts a row of a mixture takes, and how much of each (Shazeer et al., 2017,
// "Outrageously large neural networks"; DeepSeek-AI, 2024, "DeepSeek-V3").
//
//   s = softmax(logits), or sigmoid(logits)
//   chosen = the K largest of s + bias, equal ones by ascending index, out of the experts of the
//            kept_groups groups whose two best add up to most
//   w = scale * s_chosen, with `normalize` scale * s_chosen / (sum of s_chosen + least_sum)
//
//   logits (..., X + A), bias (X) or none -> routes (..., K + A, 2), U32: the expert, the f32 bits
//   of its weight
//
// Columns from X on belong to A experts that every row takes; their weights are sigmoids of their
// logits. A softmax over the chosen logits is a softmax over all that is normalized.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ExpertRouteAttrs {
  uint32_t experts = 1;  // X, at most kMostExperts
  uint32_t choices = 1;  // K; K + A at most kMostChoices
  enum class Scores : uint8_t { kSoftmax, kSigmoid } scores = Scores::kSoftmax;
  bool normalize = true;
  float scale = 1.0f;
  float least_sum = 0.0f;
  uint32_t groups = 1;       // of as many experts each, at most kMostExpertGroups
  uint32_t kept_groups = 1;  // whose experts can be chosen
};

// The output's description, or why the inputs do not fit; bias may be null.
Result<TensorDesc> check_expert_route(const TensorDesc& logits, const TensorDesc* bias,
                                      const ExpertRouteAttrs& attrs);

// Adds the node and returns the routes; bias may be kNoTensor.
Result<TensorId> add_expert_route(Graph& graph, TensorId logits, TensorId bias,
                                  const ExpertRouteAttrs& attrs);

Status lower_expert_route(LowerContext& context, const Node& node);

}  // namespace vkformer
