#include "ops/recurrence.h"

#include "base/message.h"
#include "base/narrow.h"
#include "ops/move_columns.h"
#include "ops/node_attrs.h"
#include "ops/row_op.h"
#include "params/recurrent.h"

namespace vkformer {
namespace {

Status add_fused(Graph& graph, const RecurrenceInputs& inputs, CellKind cell, TensorId y) {
  Node node = make_node<OpId::k_recurrence>(RecurrenceNodeAttrs{cell, inputs.weight},
                                            std::string(cell == CellKind::kLstm ? "lstm" : "gru") +
                                                " Hd=" + std::to_string(inputs.weight.k));
  node.inputs = {inputs.gates, inputs.weight.tensor, inputs.initial};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return {};
}

KernelId pick(MatrixFormat format) {
  if (in_blocks(format)) return KernelId::recurrence_run__f32_blocks_f32;
  return format == MatrixFormat::kF16 ? KernelId::recurrence_run__f32_f16_f32
                                      : KernelId::recurrence_run__f32_f32_f32;
}

// A product and a cell per token.
Status add_steps(Graph& graph, const RecurrenceInputs& inputs, CellKind cell, TensorId y) {
  const Shape shape = graph.tensor(y).shape;
  const uint32_t width = inputs.weight.k;
  const uint32_t state = u32(shape[2]);
  const uint32_t tokens = u32(shape[1]);
  const auto part_of_initial = [&](uint32_t column) {
    return add_columns(graph, inputs.initial, {.offset = column, .stride = state},
                       {shape[0], width});
  };
  VKF_ASSIGN(TensorId h, part_of_initial(0));
  VKF_ASSIGN(TensorId carry, part_of_initial(state - width));
  const uint32_t gates = width * gates_of(cell);
  for (uint32_t t = 0; t < tokens; ++t) {
    VKF_ASSIGN(TensorId from_state, add_linear(graph, h, inputs.weight, {}));
    VKF_ASSIGN(
        h, add_recurrent_cell(graph, {.gates = inputs.gates, .states = from_state, .carry = carry},
                              {.cell = cell, .offset = t * gates, .stride = tokens * gates}));
    const uint32_t at = t * state;
    VKF_CHECK(add_place_columns(graph, h, y, {.offset = at, .stride = tokens * state}));
    if (state == width) continue;
    VKF_CHECK(add_place_columns(graph, carry, y, {.offset = at + width, .stride = tokens * state}));
  }
  return {};
}

}  // namespace

Result<TensorDesc> check_recurrence(const TensorDesc& gates, const LinearWeight& weight,
                                    const TensorDesc* initial, const RecurrenceAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_recurrence, "gates", gates, 3));
  const uint32_t stacked = gates_of(attrs.cell);
  if (weight.k < 1 || weight.n != weight.k * stacked) {
    return op_error(OpId::k_recurrence,
                    message({"the weight of the state is (", weight.n, ", ", weight.k,
                             "), but must be (", stacked, " Hd, Hd)"}));
  }
  if (gates.shape.size() != 3 || gates.shape[0] < 1 || gates.shape[1] < 1 ||
      gates.shape[2] != weight.n) {
    return op_error(OpId::k_recurrence,
                    message({"gates has shape ", shape_text(gates.shape), ", but must be (B, T, ",
                             weight.n, ") with at least one row and token"}));
  }
  const int64_t state = int64_t{weight.k} * states_of(attrs.cell);
  if (initial != nullptr) VKF_CHECK(check_floats(OpId::k_recurrence, "initial", *initial, 2));
  if (initial != nullptr && initial->shape != Shape{gates.shape[0], state}) {
    return op_error(OpId::k_recurrence,
                    message({"initial has shape ", shape_text(initial->shape), ", but must be ",
                             shape_text({gates.shape[0], state})}));
  }
  return TensorDesc{"recurrence", DType::kF32, {gates.shape[0], gates.shape[1], state}};
}

Result<TensorId> add_recurrence(Graph& graph, const RecurrenceInputs& inputs,
                                const RecurrenceAttrs& attrs) {
  const TensorDesc* initial = inputs.initial == kNoTensor ? nullptr : &graph.tensor(inputs.initial);
  VKF_ASSIGN(TensorDesc out,
             check_recurrence(graph.tensor(inputs.gates), inputs.weight, initial, attrs));
  const TensorId y = graph.add_tensor(std::move(out));
  const bool fused = inputs.weight.k <= kMostFusedRecurrence && inputs.weight.slices.empty();
  VKF_CHECK(fused ? add_fused(graph, inputs, attrs.cell, y)
                  : add_steps(graph, inputs, attrs.cell, y));
  return y;
}

Status lower_recurrence(LowerContext& context, const Node& node) {
  const RecurrenceNodeAttrs& a = attrs_of<RecurrenceNodeAttrs>(node);
  const Shape& shape = context.desc(node.outputs[0]).shape;
  const bool initial = node.inputs[2] != kNoTensor;
  const bool lstm = a.cell == CellKind::kLstm;
  const uint32_t width = a.weight.k;
  const uint32_t local = row_local_size(context.caps, width, width);
  // A dispatch is as many steps as a software device's loops last, which is short enough for all.
  const uint64_t rounds = 2 * ((uint64_t{width} + local - 1) / local) * (uint64_t{width} + 12);
  const uint32_t most = u32(static_cast<int64_t>(kMostSoftwareIterations / (rounds + 4)));
  RecurrenceParams params{.rows = u32(shape[0]),
                          .tokens = u32(shape[1]),
                          .first = 0,
                          .count = 0,
                          .bias_offset = a.weight.bias_offset,
                          .has_initial = initial ? 1u : 0u,
                          .unused = {}};
  for (; params.first < params.tokens; params.first += params.count) {
    params.count = std::min(std::max(1u, most), params.tokens - params.first);
    Dispatch d = make_dispatch(node, pick(a.weight.format));
    d.bindings = {{node.inputs[0], Access::kRead},
                  {node.inputs[1], Access::kRead},
                  {initial ? node.inputs[2] : node.inputs[0], Access::kRead},
                  {node.outputs[0], Access::kReadWrite}};
    d.set_push(params);
    d.set_constants(RecurrenceConstants{.local_size = local,
                                        .width = width,
                                        .lstm = lstm,
                                        .format = static_cast<uint32_t>(a.weight.format)});
    set_row_groups(context, d, params.rows, 1);
    const double steps = static_cast<double>(params.rows) * params.count;
    d.flops = 2.0 * steps * a.weight.n * width;
    d.bytes = 4.0 * steps * a.weight.n * (width + 2.0);
    context.plan.dispatches.push_back(std::move(d));
  }
  return {};
}

}  // namespace vkformer
