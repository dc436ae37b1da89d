#include "ops/scale_ranks.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/row_moves.h"
#include "params/scale_ranks.h"

namespace vkformer {
namespace {

// What a step and a prompt share: the scales and ranks of x's columns.
Status check_tables(const TensorDesc& x, const TensorDesc& scales, const TensorDesc& ranks) {
  VKF_CHECK(check_floats(OpId::k_scale_ranks, "x", x, 1));
  VKF_CHECK(check_floats(OpId::k_scale_ranks, "scales", scales, 2));
  VKF_CHECK(check_floats(OpId::k_scale_ranks, "ranks", ranks, 1));
  if (scales.shape.size() != 2 || element_count(scales.shape) == 0) {
    return op_error(OpId::k_scale_ranks,
                    message({"scales have shape ", shape_text(scales.shape),
                             ", but must be (sequences, adapters) with at least one of each."}));
  }
  if (element_count(ranks.shape) == x.shape.back()) return {};
  return op_error(OpId::k_scale_ranks, message({"ranks have shape ", shape_text(ranks.shape),
                                                ", but x ", shape_text(x.shape), " has ",
                                                x.shape.back(), " columns; give one for each."}));
}

}  // namespace

Result<TensorDesc> check_scale_ranks(const TensorDesc& x, const TensorDesc& scales,
                                     const TensorDesc& ranks, ScaleRanksAttrs attrs) {
  VKF_CHECK(check_tables(x, scales, ranks));
  const auto rows = row_count(x.shape);
  if (attrs.items < 1 || attrs.beams < 1 || rows % attrs.items != 0) {
    return op_error(OpId::k_scale_ranks,
                    message({"x has ", rows, " rows of ", attrs.items, " items with ", attrs.beams,
                             " beams, but items must have equal numbers of rows and at least one "
                             "beam."}));
  }
  if (int64_t{attrs.items} * attrs.beams > scales.shape[0]) {
    return op_error(OpId::k_scale_ranks,
                    message({"scales are of ", scales.shape[0], " sequences, but ", attrs.items,
                             " items with ", attrs.beams, " beams need one for each."}));
  }
  return TensorDesc{"scale_ranks", DType::kF32, x.shape};
}

Result<TensorId> add_scale_ranks(Graph& graph, const ScaleRanksInputs& in, ScaleRanksAttrs attrs) {
  const TensorDesc& x = graph.tensor(in.x);
  TensorDesc out{"scale_ranks", DType::kF32, x.shape};
  if (graph.is_step()) {
    VKF_CHECK(check_tables(x, graph.tensor(in.scales), graph.tensor(in.ranks)));
    if (in.state == kNoTensor || row_count(x.shape) != graph.row_capacity()) {
      return op_error(OpId::k_scale_ranks,
                      message({"x has ", row_count(x.shape), " rows, but in a step it must have ",
                               graph.row_capacity(), ", one for each slot of the decode state."}));
    }
  } else {
    VKF_ASSIGN(out, check_scale_ranks(x, graph.tensor(in.scales), graph.tensor(in.ranks), attrs));
  }
  Node node = make_node<OpId::k_scale_ranks>(
      attrs, message({"items=", attrs.items, " beams=", attrs.beams}));
  node.inputs = {in.x, in.scales, in.ranks};
  if (graph.is_step()) node.inputs.push_back(in.state);
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_scale_ranks(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<ScaleRanksAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool step = context.graph.is_step();
  const auto rows = static_cast<uint32_t>(row_count(x.shape));
  const ScaleRanksParams params{
      .rows = rows,
      .width = static_cast<uint32_t>(x.shape.back()),
      .adapters = static_cast<uint32_t>(context.desc(node.inputs[1]).shape[1]),
      .per_item = std::max(1u, rows / attrs.items),
      .beams = attrs.beams,
      .unused = {}};
  Dispatch d = make_dispatch(node, step ? KernelId::scale_ranks_step__f32_none_f32
                                        : KernelId::scale_ranks_row__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.inputs[2], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  if (step) d.bindings.push_back({node.inputs[3], Access::kRead});
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  d.set_push(params);
  d.set_constants(RunConstants{.local_size = local, .chunk = run});
  set_row_groups(context, d, rows, 1);
  d.groups[2] = std::max(1u, (params.width + run - 1) / run);
  const double elements = static_cast<double>(rows) * params.width;
  d.flops = elements;
  d.bytes = 16.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
