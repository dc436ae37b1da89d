#include "ops/gated_norm.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/gated_norm.h"

namespace vkformer {
namespace {

using GateOrder = GatedNormAttrs::Order;

uint32_t order_constant(GateOrder order) {
  if (order == GateOrder::kGateFirst) return VKF_GATE_THEN_NORM;
  return order == GateOrder::kNormFirst ? VKF_NORM_THEN_GATE : VKF_GATE_ONLY;
}

const char* order_name(GateOrder order) {
  if (order == GateOrder::kGateFirst) return "gate then norm";
  return order == GateOrder::kNormFirst ? "norm then gate" : "gate only";
}

}  // namespace

Result<TensorDesc> check_gated_norm(const TensorDesc& x, const TensorDesc& z,
                                    const TensorDesc* gain, const GatedNormAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_gated_norm, "x", x, 1));
  VKF_CHECK(check_floats(OpId::k_gated_norm, "z", z, 1));
  if (row_count(x.shape) != row_count(z.shape) || attrs.first + x.shape.back() > z.shape.back()) {
    return op_error(
        OpId::k_gated_norm,
        message({"z has shape ", shape_text(z.shape),
                 ", but must have a row for each "
                 "of x ",
                 shape_text(x.shape), ", with its gates from column ", attrs.first, " on"}));
  }
  const bool normed = attrs.order != GateOrder::kGateOnly;
  const bool fits = gain != nullptr && gain->dtype == DType::kF32 && gain->shape.size() == 2 &&
                    gain->shape[0] >= 1 && gain->shape[0] * gain->shape[1] == x.shape.back();
  if (normed && !fits) {
    return op_error(
        OpId::k_gated_norm,
        message({"gain is ", gain == nullptr ? "missing" : shape_text(gain->shape),
                 ", but must be F32 (G, E) with G E = ", x.shape.back(), ", the columns of x"}));
  }
  if (!(attrs.epsilon >= 0)) {
    return op_error(OpId::k_gated_norm,
                    message({"epsilon is ", attrs.epsilon, ", but must not be negative"}));
  }
  return TensorDesc{"gated_norm", DType::kF32, x.shape};
}

Result<TensorId> add_gated_norm(Graph& graph, TensorId x, TensorId z, TensorId gain,
                                const GatedNormAttrs& attrs) {
  const TensorDesc* gains = gain == kNoTensor ? nullptr : &graph.tensor(gain);
  VKF_ASSIGN(TensorDesc out, check_gated_norm(graph.tensor(x), graph.tensor(z), gains, attrs));
  std::string text = order_name(attrs.order);
  if (gains != nullptr) text += " groups=" + std::to_string(gains->shape[0]);
  Node node = make_node<OpId::k_gated_norm>(attrs, std::move(text));
  node.inputs = {x, z, gain};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_gated_norm(LowerContext& context, const Node& node) {
  const auto& a = attrs_of<GatedNormAttrs>(node);
  const Shape& x = context.desc(node.inputs[0]).shape;
  const bool normed = a.order != GateOrder::kGateOnly;
  // Without a norm groups are only what workgroups share a row by.
  const auto width = static_cast<uint32_t>(x.back());
  uint32_t group = width;
  if (normed) group = static_cast<uint32_t>(context.desc(node.inputs[2]).shape[1]);
  const GatedNormParams params{
      .rows = static_cast<uint32_t>(row_count(x)),
      .width = width,
      .group = group,
      .gate_width = static_cast<uint32_t>(context.desc(node.inputs[1]).shape.back()),
      .gate_first = a.first,
      .epsilon = a.epsilon};
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::gated_norm_row__f32_f32_f32_subgroup
                                                  : KernelId::gated_norm_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.inputs[normed ? 2 : 1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  d.set_constants(GatedNormConstants{.local_size = row_local_size(context.caps, group),
                                     .order = order_constant(a.order),
                                     .activation = static_cast<uint32_t>(a.activation)});
  set_row_groups(context, d, params.rows, 1);
  d.groups[2] = width / group;
  const double elements = static_cast<double>(params.rows) * width;
  d.flops = 24.0 * elements;
  d.bytes = 12.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
