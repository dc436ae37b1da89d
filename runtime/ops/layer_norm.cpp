#include "ops/layer_norm.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/norm.h"

namespace vkformer {

Result<TensorDesc> check_layer_norm(const TensorDesc& x, const TensorDesc& gain_bias,
                                    LayerNormAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_layer_norm, "x", x, 1));
  VKF_CHECK(check_floats(OpId::k_layer_norm, "gain_bias", gain_bias, 2));
  if (gain_bias.shape != Shape{2, x.shape.back()}) {
    return op_error(
        OpId::k_layer_norm,
        message({"gain_bias has shape ", shape_text(gain_bias.shape),
                 ", but x's last dimension asks for ", shape_text({2, x.shape.back()}), "."}));
  }
  if (!(attrs.epsilon >= 0)) {
    return op_error(OpId::k_layer_norm,
                    message({"epsilon is ", attrs.epsilon, ", but must not be negative."}));
  }
  return TensorDesc{"layer_norm", DType::kF32, x.shape};
}

Status check_layer_norm_residual(const TensorDesc& x, const TensorDesc& residual) {
  VKF_CHECK(check_floats(OpId::k_layer_norm, "residual", residual, 1));
  if (residual.shape == x.shape) return {};
  return op_error(OpId::k_layer_norm,
                  message({"residual has shape ", shape_text(residual.shape),
                           ", but must have x's shape ", shape_text(x.shape), "."}));
}

Result<TensorId> add_layer_norm(Graph& graph, const LayerNormInputs& inputs, LayerNormAttrs attrs) {
  VKF_ASSIGN(TensorDesc out,
             check_layer_norm(graph.tensor(inputs.x), graph.tensor(inputs.gain_bias), attrs));
  if (inputs.residual != kNoTensor) {
    VKF_CHECK(check_layer_norm_residual(graph.tensor(inputs.x), graph.tensor(inputs.residual)));
  }
  Node node = make_node<OpId::k_layer_norm>(attrs, "epsilon=" + number_text(attrs.epsilon));
  node.inputs = {inputs.x, inputs.residual, inputs.gain_bias};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_layer_norm(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const NormParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                          .width = static_cast<uint32_t>(x.shape.back()),
                          .epsilon = attrs_of<LayerNormAttrs>(node).epsilon};
  const bool has_residual = node.inputs[1] != kNoTensor;
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::layer_norm_row__f32_f32_f32_subgroup
                                                  : KernelId::layer_norm_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[has_residual ? 1 : 0], Access::kRead},
                {node.inputs[2], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  d.set_constants(LayerNormConstants{.local_size = row_local_size(context.caps, params.width),
                                     .has_residual = has_residual});
  set_row_groups(context, d, params.rows, 1);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = (has_residual ? 12.0 : 9.0) * elements;
  d.bytes = (has_residual ? 12.0 : 8.0) * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
