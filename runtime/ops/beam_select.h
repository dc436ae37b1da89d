// beam_select: one step of beam search per batch item with the semantics of Hugging Face's
// generate: K = max(2, 1 + end tokens) * n candidates, length penalty, early stopping. Histories
// and the ancestry table are reordered; the key/value cache is not moved.
//
//   candidates (R, K, 2) -> search (params/search.h), ancestry (R, C)
#pragma once

#include "ops/token_candidates.h"

namespace vkformer {

Status check_beam_select(const TensorDesc& candidates, const SearchParams& params);
Status add_beam_select(Graph& graph, TensorId candidates, const SearchTensors& search);
Status lower_beam_select(LowerContext& context, const Node& node);

}  // namespace vkformer
