#include "ops/gather_rows.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/row_moves.h"

namespace vkformer {

Result<TensorDesc> check_gather_rows(const TensorDesc& x, const TensorDesc& indices) {
  VKF_CHECK(check_floats(OpId::k_gather_rows, "x", x, 1));
  if (indices.dtype != DType::kU32) {
    return op_error(OpId::k_gather_rows,
                    message({"indices is ", dtype_name(indices.dtype), " ",
                             shape_text(indices.shape), ", but must be U32."}));
  }
  Shape shape = indices.shape;
  shape.push_back(x.shape.back());
  return TensorDesc{"gather_rows", DType::kF32, std::move(shape)};
}

Status check_gather_rows_addend(const TensorDesc& addend, const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_gather_rows, "addend", addend, 2));
  if (addend.shape.size() == 2 && addend.shape[0] > 0 && addend.shape[1] == x.shape.back()) {
    return {};
  }
  return op_error(OpId::k_gather_rows,
                  message({"addend has shape ", shape_text(addend.shape),
                           ", but must be (P, D) with P above 0 and D = ", x.shape.back(), "."}));
}

Result<TensorId> add_gather_rows(Graph& graph, const GatherRowsInputs& inputs) {
  const TensorDesc& x = graph.tensor(inputs.x);
  VKF_ASSIGN(TensorDesc out, check_gather_rows(x, graph.tensor(inputs.indices)));
  const bool has_addend = inputs.addend != kNoTensor;
  if (has_addend) VKF_CHECK(check_gather_rows_addend(graph.tensor(inputs.addend), x));
  Node node = make_node<OpId::k_gather_rows>(GatherRowsAttrs{}, has_addend ? "addend" : "");
  node.inputs = {inputs.x, inputs.indices, inputs.addend};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_gather_rows(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool has_addend = node.inputs[2] != kNoTensor;
  // Not of y, which a model may have given another shape.
  const auto rows = static_cast<uint64_t>(element_count(context.desc(node.inputs[1]).shape));
  GatherRowsParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.width = static_cast<uint32_t>(x.shape.back());
  params.source_rows = static_cast<uint32_t>(row_count(x.shape));
  if (has_addend) {
    params.addend_rows = static_cast<uint32_t>(context.desc(node.inputs[2]).shape[0]);
  }
  Dispatch d = make_dispatch(node, KernelId::gather_rows_run__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {has_addend ? node.inputs[2] : node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  d.set_constants(GatherRowsConstants{.local_size = local, .chunk = run, .has_addend = has_addend});
  set_row_groups(context, d, rows, 1);
  d.groups[2] = std::max(1u, (params.width + run - 1) / run);
  const double elements = static_cast<double>(rows) * params.width;
  d.flops = elements;
  d.bytes = elements * (has_addend ? 12.0 : 8.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
