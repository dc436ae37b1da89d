#include "ops/greedy_select.h"
#include "base/message.h"

namespace vkformer {

Status check_greedy_select(const TensorDesc& candidates, const SearchParams& p) {
  if (p.beams == 1 && candidates.shape == Shape{p.batch, 1, 2}) return {};
  return op_error(OpId::k_greedy_select,
                  message({"candidates are ", shape_text(candidates.shape), " with ", p.beams,
                           " beam(s), but must be (R, 1, 2) with one beam"}));
}

Status add_greedy_select(Graph& graph, TensorId candidates, const SearchTensors& search) {
  VKF_CHECK(check_greedy_select(graph.tensor(candidates), search.params));
  Node node = make_node<OpId::k_greedy_select>(search.params, "");
  node.inputs = {candidates, search.state, search.settings};
  node.outputs = {search.search};
  graph.add_node(std::move(node));
  return {};
}

Status lower_greedy_select(LowerContext& context, const Node& node) {
  constexpr uint32_t kSlotsPerGroup = 32;  // the shader's local size
  const SearchParams& p = attrs_of<SearchParams>(node);
  Dispatch d = make_dispatch(node, KernelId::greedy_select_slot__u32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kReadWrite},
                {node.inputs[1], Access::kRead},
                {node.inputs[2], Access::kRead}};
  d.set_push(p);
  set_row_groups(context, d, p.batch, kSlotsPerGroup);
  d.flops = p.batch;
  d.bytes = 16.0 * p.batch;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
