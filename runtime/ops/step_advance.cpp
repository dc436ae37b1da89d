#include "ops/step_advance.h"

#include <algorithm>

#include "base/message.h"
#include "params/decode_state.h"

namespace vkformer {

Status check_step_advance(const Graph& graph, const SearchTensors& search) {
  const SearchParams& p = search.params;
  const int64_t rows = int64_t{p.batch} * p.beams;
  if (!graph.is_step() || graph.row_capacity() != rows) {
    return op_error(OpId::k_step_advance,
                    message({"the graph is not a decoding step of ", rows, " rows"}));
  }
  if (rows > VKF_MAX_SLOTS) {
    return op_error(OpId::k_step_advance,
                    message({"there are ", rows, " rows (batch times beams), but at most ",
                             VKF_MAX_SLOTS, " can run together; use a smaller batch"}));
  }
  return {};
}

Status add_step_advance(Graph& graph, const SearchTensors& search) {
  VKF_CHECK(check_step_advance(graph, search));
  Node node = make_node<OpId::k_step_advance>(search.params, "");
  node.inputs = {search.search};
  node.outputs = {search.state, search.step_ids, search.args};
  graph.add_node(std::move(node));
  return {};
}

Status lower_step_advance(LowerContext& context, const Node& node) {
  Dispatch d = make_dispatch(node, KernelId::step_advance_all__u32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kReadWrite},
                {node.outputs[1], Access::kWrite},
                {node.outputs[2], Access::kReadWrite}};
  d.set_push(attrs_of<SearchParams>(node));
  d.flops = context.graph.row_capacity();
  d.bytes = 8.0 * context.graph.row_capacity();
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

Status count_step_dispatches(Plan& plan) {
  const auto count =
      static_cast<uint32_t>(std::count_if(plan.dispatches.begin(), plan.dispatches.end(),
                                          [](const Dispatch& d) { return d.live_axis >= 0; }));
  if (count > kMaxStepDispatches) {
    return unsupported(
        message({"[step_advance] the step has ", count, " dispatches over live rows, but at most ",
                 kMaxStepDispatches, " are supported"}));
  }
  for (Dispatch& d : plan.dispatches) {
    if (d.kernel != KernelId::step_advance_all__u32) continue;
    auto params = d.push_as<SearchParams>();
    params.arg_count = count;
    d.set_push(params);
  }
  return {};
}

std::vector<uint32_t> step_arg_table(const Plan& plan) {
  std::vector<uint32_t> table;
  for (const Dispatch& d : plan.dispatches) {
    if (d.live_axis < 0) continue;
    table.push_back(static_cast<uint32_t>(d.live_axis) | d.slots_per_group << 2);
    table.insert(table.end(), d.groups.begin(), d.groups.end());
  }
  return table;
}

}  // namespace vkformer
