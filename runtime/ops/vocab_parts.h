// Rows over a vocabulary in parts of VKF_VOCAB_PART tokens: what the operators that choose tokens
// share, so that no invocation's work grows with the vocabulary.
#pragma once

#include "ops/op.h"
#include "params/search.h"

namespace vkformer {

// P, the parts of a row.
uint32_t vocab_parts(const SearchParams& params);

// Where a row has several parts, a tensor (R, P, 2) for each part's largest logit and sum of
// exp(logit - largest); else none. It is an output of the node that lower_part_sums is called for.
TensorId add_part_sums(Graph& graph, const SearchParams& params);
// The dispatch that fills it.
void lower_part_sums(LowerContext& context, const Node& node, const SearchParams& params,
                     TensorId logits, TensorId state, TensorId part_sums);

// A workgroup for every row and part.
void set_part_groups(const LowerContext& context, Dispatch& dispatch, const SearchParams& params);
// Invocations of one of these workgroups, which goes over its part in so many passes.
uint32_t part_local_size(const DeviceCaps& caps, const SearchParams& params, uint64_t passes);

}  // namespace vkformer
