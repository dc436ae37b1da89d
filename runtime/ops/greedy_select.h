// greedy_select: appends every live row's best token and ends rows at an end token or at the last
// position. Part of a decoding step; B = R rows, one beam each.
//
//   candidates (R, 1, 2) -> search (params/search.h)
#pragma once

#include "ops/token_candidates.h"

namespace vkformer {

Status check_greedy_select(const TensorDesc& candidates, const SearchParams& params);
Status add_greedy_select(Graph& graph, TensorId candidates, const SearchTensors& search);
Status lower_greedy_select(LowerContext& context, const Node& node);

}  // namespace vkformer
