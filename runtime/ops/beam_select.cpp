#include "ops/beam_select.h"

#include <algorithm>

#include "base/message.h"
#include "ops/node_attrs.h"
#include "ops/row_kernel.h"

namespace vkformer {

Status check_beam_select(const TensorDesc& candidates, const SearchParams& p) {
  if (p.beams < 1 || p.beams > VKF_MAX_BEAMS) {
    return op_error(OpId::k_beam_select, message({"there are ", p.beams, " beams, but at most ",
                                                  VKF_MAX_BEAMS, " are supported"}));
  }
  if (p.candidates < 2 * p.beams) {
    return op_error(
        OpId::k_beam_select,
        message({"K is ", p.candidates, ", but must be at least twice the beams, ", 2 * p.beams}));
  }
  const Shape expected = {int64_t{p.batch} * p.beams, p.candidates, 2};
  if (candidates.shape == expected) return {};
  return op_error(OpId::k_beam_select,
                  message({"candidates are ", shape_text(candidates.shape),
                           ", but must be (R, K, 2) = ", shape_text(expected)}));
}

Status add_beam_select(Graph& graph, TensorId candidates, const SearchTensors& search,
                       const BeamSelectKind& kind) {
  VKF_CHECK(check_beam_select(graph.tensor(candidates), search.params));
  Node node = make_node<OpId::k_beam_select>(BeamSelectAttrs{search.params, kind},
                                             "beams=" + std::to_string(search.params.beams));
  node.inputs = {candidates, search.state, search.settings,
                 kind.choice == BeamChoice::kSampled ? search.choice : candidates};
  node.outputs = {search.search, search.ancestry};
  graph.add_node(std::move(node));
  return {};
}

namespace {

// Rounds of the loops of one of `lanes` invocations: the candidates, then histories of every beam.
uint64_t rounds_of(const SearchParams& p, uint32_t lanes) {
  const uint64_t candidates = uint64_t{p.beams} * p.candidates / lanes + 1;
  const uint64_t positions = p.capacity / lanes + 1;
  return 2 * p.candidates * (candidates + 1) + positions * (1 + 3 * uint64_t{p.beams});
}

// One lane group, more where loops would be cut short.
Result<uint32_t> local_size(const DeviceCaps& caps, const SearchParams& p) {
  const uint32_t most =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  uint32_t lanes = std::min(32u, most);
  while (leaves_loops(caps, rounds_of(p, lanes)) && 2 * lanes <= most) lanes *= 2;
  if (!leaves_loops(caps, rounds_of(p, lanes))) return lanes;
  return unsupported(
      message({"[beam_select] There is no kernel for histories of ", p.capacity, " tokens with ",
               p.beams, " beams on a software device; use fewer beams, or generate less"}));
}

}  // namespace

Status lower_beam_select(LowerContext& context, const Node& node) {
  const auto& [p, kind] = attrs_of<BeamSelectAttrs>(node);
  VKF_ASSIGN(const uint32_t lanes, local_size(context.caps, p));
  Dispatch d = make_dispatch(node, KernelId::beam_select_item__u32);
  d.bindings = {{node.inputs[0], Access::kRead},       {node.outputs[0], Access::kReadWrite},
                {node.outputs[1], Access::kReadWrite}, {node.inputs[3], Access::kRead},
                {node.inputs[1], Access::kRead},       {node.inputs[2], Access::kRead}};
  d.set_push(p);
  d.set_constants(BeamSelectConstants{.local_size = lanes,
                                      .picks = kind.picks != 0 ? kind.picks : p.candidates,
                                      .groups = kind.groups,
                                      .group = kind.group,
                                      .drawn = kind.choice == BeamChoice::kSampled});
  set_row_groups(context, d, uint64_t{p.batch} * p.beams, p.beams);
  d.flops = 2.0 * p.batch * p.beams * p.candidates * p.candidates;
  d.bytes = 16.0 * p.batch * p.beams * p.capacity;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
