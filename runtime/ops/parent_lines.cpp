#include "ops/parent_lines.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/decode_state.h"
#include "params/state_scan.h"

namespace vkformer {

Result<TensorId> add_parent_lines(Graph& graph, TensorId ancestry, TensorId state,
                                  const ParentLinesAttrs& attrs) {
  if (!graph.is_step()) {
    return op_error(OpId::k_parent_lines,
                    "the graph is not a decoding step, which alone has parents");
  }
  if (attrs.lines < 2 || attrs.beams < 1) {
    return op_error(OpId::k_parent_lines,
                    message({"a row has ", attrs.lines, " lines and an item ", attrs.beams,
                             " rows, but must have at least 2 and 1"}));
  }
  if (uint64_t{graph.row_capacity()} * attrs.lines > VKF_MOST_LINES) {
    return op_error(OpId::k_parent_lines,
                    message({graph.row_capacity(), " slots with ", attrs.lines,
                             " lines each are more than ", uint64_t{VKF_MOST_LINES},
                             " lines; use fewer rows, or fewer tokens that a row may go back"}));
  }
  const TensorDesc& words = graph.tensor(ancestry);
  if (words.dtype != DType::kU32 || element_count(words.shape) < int64_t{attrs.positions}) {
    return op_error(OpId::k_parent_lines,
                    message({"ancestry is ", dtype_name(words.dtype), " ", shape_text(words.shape),
                             ", but must be U32 with ", attrs.positions, " words a row"}));
  }
  Node node = make_node<OpId::k_parent_lines>(attrs, "lines=" + std::to_string(attrs.lines));
  node.inputs = {ancestry, state};
  return add_single_output(graph, std::move(node),
                           TensorDesc{"parent_lines", DType::kU32, {VKF_MAX_SLOTS}});
}

Status check_state_tensors(OpId op, const Graph& graph, const TensorDesc& x,
                           const StateTensors& tensors) {
  if (!graph.is_step() && x.shape.size() != 3) {
    return op_error(op,
                    message({"x has shape ", shape_text(x.shape),
                             ", but must be (B, T, W) where the graph is not a decoding step"}));
  }
  const bool has_states = tensors.states != kNoTensor;
  const bool lacks_parents = graph.is_step() && (!has_states || tensors.parents == kNoTensor);
  if (!lacks_parents && (!has_states || tensors.state != kNoTensor)) return {};
  return op_error(op,
                  "a step needs states, their parents and the decode state, a prompt with states "
                  "the decode state");
}

Status lower_parent_lines(LowerContext& context, const Node& node) {
  const auto& a = attrs_of<ParentLinesAttrs>(node);
  const uint32_t slots = context.graph.row_capacity();
  const ParentLinesParams params{.positions = a.positions,
                                 .lines = a.lines,
                                 .beams = a.beams,
                                 .runs = a.runs == ParentLinesAttrs::Runs::kYes};
  Dispatch d = make_dispatch(node, KernelId::parent_lines_slot__u32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite},
                {node.inputs[1], Access::kRead}};
  d.set_push(params);
  const uint32_t local = row_local_size(context.caps, slots);
  d.set_constants(WorkgroupConstants{.local_size = local});
  d.groups = {(slots + local - 1) / local, 1, 1};
  d.live_axis = 0;
  d.slots_per_group = local;
  d.flops = slots;
  d.bytes = 12.0 * slots;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
