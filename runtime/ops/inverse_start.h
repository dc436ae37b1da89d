// inverse_start: where the iteration for a pseudo-inverse begins, y = a^T / c with c the largest
// column sum (Razavi et al. 2014). c is of all matrices together, as the Nystroemformer was first
// published (Xiong et al. 2021), or each matrix has its own.
//
//   a (N, M, M), sums (N, 1, M), a's column sums -> y (N, M, M)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct InverseStartAttrs {
  // kShared: a matrix's start depends on the others, so a row's result on what shares its batch.
  enum class Maximum : uint8_t { kShared, kOwn } maximum = Maximum::kShared;
};

// The output's description, or why the inputs do not fit: a (N, M, M), sums (N, 1, M).
Result<TensorDesc> check_inverse_start(const TensorDesc& a, const TensorDesc& sums);

// Adds the node to the graph, a (N, M, M), sums (N, 1, M), and returns y (N, M, M).
Result<TensorId> add_inverse_start(Graph& graph, TensorId a, TensorId sums,
                                   InverseStartAttrs attrs);

Status lower_inverse_start(LowerContext& context, const Node& node);

}  // namespace vkformer
