#include "ops/rms_norm.h"

#include "base/message.h"
#include "ops/row_kernel.h"
#include "params/norm.h"

namespace vkformer {

Result<TensorDesc> check_rms_norm(const TensorDesc& x, const TensorDesc& gain, RmsNormAttrs attrs) {
  if (x.dtype != DType::kF32 || x.shape.empty()) {
    return op_error(OpId::k_rms_norm,
                    message({"x is ", dtype_name(x.dtype), " ", shape_text(x.shape),
                             ", but must be F32 with at least one dimension"}));
  }
  if (gain.shape != Shape{x.shape.back()} && gain.shape != Shape{2, x.shape.back()}) {
    return op_error(OpId::k_rms_norm,
                    message({"gain has shape ", shape_text(gain.shape),
                             ", but x's last dimension asks for (", x.shape.back(), ")"}));
  }
  if (!(attrs.epsilon >= 0)) {
    return op_error(OpId::k_rms_norm,
                    message({"epsilon is ", attrs.epsilon, ", but must not be negative"}));
  }
  return TensorDesc{"rms_norm", DType::kF32, x.shape};
}

Result<TensorId> add_rms_norm(Graph& graph, TensorId x, TensorId gain, RmsNormAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_rms_norm(graph.tensor(x), graph.tensor(gain), attrs));
  const TensorId y = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_rms_norm>(attrs, "epsilon=" + number_text(attrs.epsilon));
  node.inputs = {x, gain};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

Status lower_rms_norm(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const NormParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                          .width = static_cast<uint32_t>(x.shape.back()),
                          .epsilon = attrs_of<RmsNormAttrs>(node).epsilon};
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::rms_norm_row__f32_f32_f32_subgroup
                                                  : KernelId::rms_norm_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  d.set_constants(WorkgroupConstants{row_local_size(context.caps, params.width)});
  set_row_groups(context, d, params.rows, 1);
  d.flops = 4.0 * params.rows * params.width;
  d.bytes = 8.0 * params.rows * params.width;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
