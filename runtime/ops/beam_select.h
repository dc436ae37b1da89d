// beam_select: one step of beam search per batch item with the semantics of Hugging Face's
// generate. It has K = max(2, 1 + end tokens) * n candidates, length penalty, early stopping.
// Histories and the ancestry table are reordered; the key/value cache is not moved.
//
//   candidates (R, K, 2) -> search (params/search.h), ancestry (R, C)
#pragma once

#include "ops/token_candidates.h"

namespace vkformer {

// Items may be groups of one search, `groups` of them for each. Then there is one node a group, in
// order. Each looks at what those before have chosen (Vijayakumar et al. 2018).
struct BeamSelectKind {
  uint32_t picks = 0;  // candidates of an item that are looked at; 0: K
  uint32_t groups = 1;
  uint32_t group = 0;
  BeamChoice choice = BeamChoice::kBest;
};

Status check_beam_select(const TensorDesc& candidates, const SearchParams& params);
Status add_beam_select(Graph& graph, TensorId candidates, const SearchTensors& search,
                       const BeamSelectKind& kind = {});
Status lower_beam_select(LowerContext& context, const Node& node);

}  // namespace vkformer
