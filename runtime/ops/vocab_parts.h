// Rows over a vocabulary in parts of VKF_VOCAB_PART tokens: what the operators that choose tokens
// share, so that no invocation's work grows with the vocabulary.
#pragma once

#include "ops/op.h"
#include "params/search.h"

namespace vkformer {

// P, the parts of a row.
uint32_t vocab_parts(const SearchParams& params);

// The log-softmax of rows of several parts, in two dispatches.
struct PartLogs {
  TensorId sums = kNoTensor;    // (R, P, 2): each part's largest logit, sum of exp(logit - largest)
  TensorId values = kNoTensor;  // (R, V)
};
// Two more outputs of a node.
PartLogs add_part_logs(Graph& graph, const SearchParams& params);
void lower_part_logs(LowerContext& context, const Node& node, const SearchParams& params,
                     TensorId logits, TensorId state, const PartLogs& logs);

// A workgroup for every row and part.
void set_part_groups(const LowerContext& context, Dispatch& dispatch, const SearchParams& params);
// Invocations of one of these workgroups, which goes over its part `passes` times.
uint32_t part_local_size(const DeviceCaps& caps, const SearchParams& params, uint64_t passes);

}  // namespace vkformer
