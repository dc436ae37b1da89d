// token_sample: samples every live slot's next token from the softmax of its scores over the
// temperature. Top-k, top-p (Holtzman et al. 2020), min-p (Nguyen et al. 2024) and locally typical
// sampling (Meister et al. 2023) leave a part of it, in this order. A row's random numbers depend
// on its seed, its stream and how many tokens it has generated, and on nothing else. With a
// temperature of 0 it takes the best token. Part of a decoding step.
//
//   scores (R, V), logits (R, V), choice (params/sampling.h) -> candidates (R, 1, 2): f32 bits,
//   token. The f32 is the token's log-probability by the logits; NaN where one of them is; where
//   no score is above -infinity it is that, and the token VKF_NO_TOKEN.
#pragma once

#include "ops/token_scores.h"

namespace vkformer {

// What it gives: one token a row, or (R, V) f32. These are each token's score over the temperature
// where it is left, -infinity where not. Beams draw from them.
enum class SampleOutput : uint8_t { kToken, kScores };

// The settings that some row may have. A row that has others is an error of the caller's.
struct SampleFilters {
  bool top_k = true, top_p = true, typical = true;

  // Of one row.
  static SampleFilters of(const ChoiceRow& row);
  bool operator==(const SampleFilters&) const = default;
};

Result<TensorDesc> check_token_sample(const TensorDesc& scores, const TensorDesc& logits,
                                      const SearchParams& params);
Result<TensorId> add_token_sample(Graph& graph, TensorId scores, TensorId logits,
                                  const SearchTensors& search,
                                  SampleOutput output = SampleOutput::kToken,
                                  const SampleFilters& filters = {});
Status lower_token_sample(LowerContext& context, const Node& node);

}  // namespace vkformer
