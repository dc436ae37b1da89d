// What the row-wise operators share in their host code: checks and the grids of element runs.
#pragma once

#include "ops/op.h"
#include "ops/row_kernel.h"

namespace vkformer {

// Is `t` F32 with at least `min_rank` dimensions? `role` names it in the message. t (...).
Status check_floats(OpId op, const char* role, const TensorDesc& t, size_t min_rank);

// Makes the output tensor, adds the node and returns the output.
TensorId add_single_output(Graph& graph, Node node, TensorDesc output);

// Elements of a row that one workgroup of an element-wise kernel takes.
uint32_t run_length(const DeviceCaps& caps, uint32_t local_size);

// A dispatch that reduces every row of `width` elements with one workgroup. Its bindings are in
// order, the last one written. Its local size is specialization constant 0.
Dispatch make_row_dispatch(const LowerContext& context, const Node& node, KernelId kernel,
                           uint64_t rows, uint32_t width);

// A dispatch that writes rows of `width` elements, one workgroup a run of them on z (RunConstants),
// with the cost of moving each.
Dispatch make_run_dispatch(const LowerContext& context, const Node& node, KernelId kernel,
                           uint64_t rows, uint32_t width);

}  // namespace vkformer
