// expand_keys: queries, keys and values side by side, as attention takes them, where all heads
// share a part of their keys. That is multi-head latent attention (DeepSeek-AI, 2024,
// "DeepSeek-V2").
//
//   q (..., H E), shared (..., Es or more), kv (..., H Eo + H Ev) -> y (..., 2 H E + H Ev)
//
// E is Es + Eo. // A row of kv has the own part of the keys of all heads, then all values. A key of
// y is the shared part, then the head's own.
#pragma once

#include "ops/op.h"

namespace vkformer {

struct ExpandKeysInputs {
  TensorId q = kNoTensor;
  TensorId shared = kNoTensor;
  TensorId kv = kNoTensor;
};

struct ExpandKeysAttrs {
  uint32_t heads = 1;         // H
  uint32_t value_width = 1;   // Ev
  uint32_t shared_width = 0;  // Es, the first columns of a row of shared; 0: all of them
};

// The output's description, or why the inputs do not fit.
Result<TensorDesc> check_expand_keys(const TensorDesc& q, const TensorDesc& shared,
                                     const TensorDesc& kv, const ExpandKeysAttrs& attrs);

// Adds the node and returns y.
Result<TensorId> add_expand_keys(Graph& graph, const ExpandKeysInputs& inputs,
                                 const ExpandKeysAttrs& attrs);

Status lower_expand_keys(LowerContext& context, const Node& node);

}  // namespace vkformer
