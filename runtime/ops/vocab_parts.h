// Rows over a vocabulary in parts of VKF_VOCAB_PART tokens: what the operators that choose tokens
// share, so that no invocation's work grows with the vocabulary.
#pragma once

#include "ops/op.h"
#include "params/search.h"

namespace vkformer {

// P, the parts of a row.
uint32_t vocab_parts(const SearchParams& params);

// The sums of a log-softmax of rows of several parts (R, P, 2): each part's largest logit and its
// sum of exp(logit - largest). One more output of a node.
TensorId add_part_sums(Graph& graph, const SearchParams& params);
void lower_part_sums(LowerContext& context, const Node& node, const SearchParams& params,
                     TensorId logits, TensorId state, TensorId sums);

// That log-softmax (R, V), from its sums. One more output of a node.
TensorId add_part_logs(Graph& graph, const SearchParams& params);
void lower_part_logs(LowerContext& context, const Node& node, const SearchParams& params,
                     TensorId logits, TensorId state, TensorId sums, TensorId logs);

// A workgroup for every row and part.
void set_part_groups(const LowerContext& context, Dispatch& dispatch, const SearchParams& params);
// Invocations of one of these workgroups, which goes over its part `passes` times.
uint32_t part_local_size(const DeviceCaps& caps, const SearchParams& params, uint64_t passes);

}  // namespace vkformer
