#include "ops/recurrent_cell.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/recurrent.h"

namespace vkformer {
Result<TensorDesc> check_recurrent_cell(const TensorDesc& gates, const TensorDesc& states,
                                        const TensorDesc& carry, const RecurrentCellAttrs& a) {
  VKF_CHECK(check_floats(OpId::k_recurrent_cell, "gates", gates, 1));
  VKF_CHECK(check_floats(OpId::k_recurrent_cell, "states", states, 2));
  VKF_CHECK(check_floats(OpId::k_recurrent_cell, "carry", carry, 2));
  if (carry.shape.size() != 2 || carry.shape[0] < 1 || carry.shape[1] < 1) {
    return op_error(OpId::k_recurrent_cell, message({"carry has shape ", shape_text(carry.shape),
                                                     ", but must be (R, Hd), both at least 1"}));
  }
  const int64_t rows = carry.shape[0];
  const int64_t width = gates_of(a.cell) * carry.shape[1];
  if (states.shape != Shape{rows, width}) {
    return op_error(OpId::k_recurrent_cell,
                    message({"states has shape ", shape_text(states.shape), ", but carry asks for ",
                             shape_text({rows, width})}));
  }
  const int64_t stride = a.stride == 0 ? width : a.stride;
  const int64_t end = int64_t{a.offset} + (rows - 1) * stride + width;
  if (element_count(gates.shape) < end) {
    return op_error(OpId::k_recurrent_cell,
                    message({"gates ", shape_text(gates.shape), " ends before element ", end,
                             ", which its last row needs"}));
  }
  return TensorDesc{"h", DType::kF32, carry.shape};
}

Result<TensorId> add_recurrent_cell(Graph& graph, const RecurrentCellInputs& inputs,
                                    RecurrentCellAttrs attrs) {
  VKF_ASSIGN(TensorDesc out,
             check_recurrent_cell(graph.tensor(inputs.gates), graph.tensor(inputs.states),
                                  graph.tensor(inputs.carry), attrs));
  const TensorId h = graph.add_tensor(std::move(out));
  if (attrs.stride == 0) {
    attrs.stride = static_cast<uint32_t>(graph.tensor(inputs.states).shape[1]);
  }
  Node node =
      make_node<OpId::k_recurrent_cell>(attrs, attrs.cell == CellKind::kLstm ? "lstm" : "gru");
  node.inputs = {inputs.gates, inputs.states};
  node.outputs = {inputs.carry, h};
  graph.add_node(std::move(node));
  return h;
}

Status lower_recurrent_cell(LowerContext& context, const Node& node) {
  const RecurrentCellAttrs& a = attrs_of<RecurrentCellAttrs>(node);
  const TensorDesc& h = context.desc(node.outputs[1]);
  const RecurrentCellParams params{.rows = static_cast<uint32_t>(h.shape[0]),
                                   .width = static_cast<uint32_t>(h.shape[1]),
                                   .offset = a.offset,
                                   .stride = a.stride};
  Dispatch d = make_dispatch(node, KernelId::recurrent_cell_run__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kReadWrite},
                {node.outputs[1], Access::kWrite}};
  d.set_push(params);
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  d.set_constants(
      RecurrentCellConstants{.local_size = local, .chunk = run, .lstm = a.cell == CellKind::kLstm});
  set_row_groups(context, d, params.rows, 1);
  d.groups[2] = (params.width + run - 1) / run;
  const double units = static_cast<double>(params.rows) * params.width;
  d.flops = 80.0 * units;
  d.bytes = 4.0 * units * (2.0 * gates_of(a.cell) + 3.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
