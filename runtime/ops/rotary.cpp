#include "ops/rotary.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/rotary.h"

namespace vkformer {
namespace {

RotaryAttrs with_defaults(RotaryAttrs attrs, const Shape& x) {
  if (attrs.rotary_width == 0) attrs.rotary_width = attrs.head_width;
  if (attrs.tokens == 0 && x.size() >= 2) attrs.tokens = static_cast<uint32_t>(x[x.size() - 2]);
  attrs.tokens = std::max(1u, attrs.tokens);
  return attrs;
}

}  // namespace

Result<TensorDesc> check_rotary(const TensorDesc& x, const TensorDesc& table,
                                const RotaryAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_rotary, "x", x, 1));
  VKF_CHECK(check_floats(OpId::k_rotary, "table", table, 2));
  const RotaryAttrs a = with_defaults(attrs, x.shape);
  if (a.rotary_width == 0 || a.rotary_width % 2 != 0 || a.rotary_width > a.head_width) {
    return op_error(
        OpId::k_rotary,
        message({"The rotary width is ", a.rotary_width,
                 ", but must be even, above 0 and at most the head width ", a.head_width, "."}));
  }
  if (a.heads == 0 || uint64_t{a.heads} * a.head_width > static_cast<uint64_t>(x.shape.back())) {
    return op_error(OpId::k_rotary,
                    message({a.heads, " heads of width ", a.head_width,
                             " are to be turned, but x has shape ", shape_text(x.shape),
                             "; there must be at least one head and each must lie in a row."}));
  }
  if (table.shape.size() != 2 || table.shape[1] != int64_t{a.rotary_width}) {
    return op_error(OpId::k_rotary,
                    message({"table has shape ", shape_text(table.shape),
                             ", but must be (P, r) with r = ", a.rotary_width, "."}));
  }
  return TensorDesc{"rotary", DType::kF32, x.shape};
}

Status check_rotary_positions(const TensorDesc& positions, const TensorDesc& x,
                              const RotaryAttrs& attrs) {
  const uint64_t needed = attrs.positions_at + row_count(x.shape);
  if (positions.dtype == DType::kU32 &&
      static_cast<uint64_t>(element_count(positions.shape)) >= needed) {
    return {};
  }
  return op_error(
      OpId::k_rotary,
      message({"positions is ", dtype_name(positions.dtype), " ", shape_text(positions.shape),
               ", but must be U32 with at least ", needed, " elements, one for each row of x ",
               shape_text(x.shape), " from element ", attrs.positions_at, " on."}));
}

Result<TensorId> add_rotary(Graph& graph, const RotaryInputs& inputs, RotaryAttrs attrs) {
  const TensorDesc& x = graph.tensor(inputs.x);
  VKF_ASSIGN(TensorDesc out, check_rotary(x, graph.tensor(inputs.table), attrs));
  if (inputs.positions != kNoTensor) {
    VKF_CHECK(check_rotary_positions(graph.tensor(inputs.positions), x, attrs));
  }
  attrs = with_defaults(attrs, x.shape);
  Node node = make_node<OpId::k_rotary>(
      attrs, "heads=" + std::to_string(attrs.heads) + "x" + std::to_string(attrs.head_width) +
                 " turned=" + std::to_string(attrs.rotary_width) +
                 (attrs.pairs == RotaryPairs::kInterleaved ? " interleaved" : " halves") +
                 " offset=" + std::to_string(attrs.position_offset));
  node.inputs = {inputs.x, inputs.table, inputs.positions};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_rotary(LowerContext& context, const Node& node) {
  const RotaryAttrs& attrs = attrs_of<RotaryAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool has_positions = node.inputs[2] != kNoTensor;
  const uint64_t rows = row_count(x.shape);
  RotaryParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.width = static_cast<uint32_t>(x.shape.back());
  params.heads = attrs.heads;
  params.head_width = attrs.head_width;
  params.pairs = attrs.rotary_width / 2;
  params.table_rows = static_cast<uint32_t>(context.desc(node.inputs[1]).shape[0]);
  params.tokens = attrs.tokens;
  params.position_offset = attrs.position_offset;
  params.positions_at = attrs.positions_at;
  Dispatch d = make_dispatch(node, KernelId::rotary_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {has_positions ? node.inputs[2] : node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  // An invocation takes a pair of a head, or a few where heads are wide.
  const uint32_t local = row_local_size(context.caps, 2 * attrs.rotary_width);
  const uint32_t blocks = std::max(1u, run_length(context.caps, local) / attrs.head_width);
  d.set_constants(RotaryConstants{.local_size = local,
                                  .heads_per_group = blocks,
                                  .interleaved = attrs.pairs == RotaryPairs::kInterleaved,
                                  .has_positions = has_positions});
  set_row_groups(context, d, rows, 1);
  const uint32_t span = std::min(blocks * attrs.head_width, params.width);
  d.groups[2] = (params.width + span - 1) / span;
  const double turned = static_cast<double>(rows) * attrs.heads * attrs.rotary_width;
  d.flops = 3.0 * turned;
  d.bytes = 8.0 * static_cast<double>(rows) * params.width + 4.0 * turned;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
