// scale_ranks: y[r, j] = scales[sequence of r, ranks[j]] x[r, j].
//
//   x (..., J), scales (sequences, A), ranks (1, J) -> y (..., J).
//
// It is between the two products of low-rank adapters (Hu et al., 2021). Several adapters are side
// by side, and each sequence of a pass has its own scale of each. Column j belongs to adapter
// ranks[j]. A scale of 0 gives 0 for any x: an adapter that a sequence does not use cannot reach
// it, not even by infinity. In a decoding step rows are slots, and the state says the sequence of
// each. Else rows are items one after the other, of equal length.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ScaleRanksAttrs {
  uint32_t items = 1;  // of x, unless rows are slots
  uint32_t beams = 1;  // sequences of an item, the first of which has its scales
};

struct ScaleRanksInputs {
  TensorId x = kNoTensor;
  TensorId scales = kNoTensor;  // (sequences, A)
  TensorId ranks = kNoTensor;   // (1, J), whole numbers below A in F32
  TensorId state = kNoTensor;   // DecodeState and slot rows; of a step alone
};

// The output's description, or why the inputs do not fit, outside of a step.
Result<TensorDesc> check_scale_ranks(const TensorDesc& x, const TensorDesc& scales,
                                     const TensorDesc& ranks, ScaleRanksAttrs attrs);

// Adds the node to the graph and returns y (..., J).
Result<TensorId> add_scale_ranks(Graph& graph, const ScaleRanksInputs& inputs,
                                 ScaleRanksAttrs attrs);

Status lower_scale_ranks(LowerContext& context, const Node& node);

}  // namespace vkformer
