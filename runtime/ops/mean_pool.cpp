#include "ops/mean_pool.h"

#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_mean_pool(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_mean_pool, "x", x, 3));
  if (x.shape.size() != 3) {
    return op_error(OpId::k_mean_pool, "x has shape " + shape_text(x.shape) +
                                           ", but must have three dimensions (B, T, D).");
  }
  return TensorDesc{"mean_pool", DType::kF32, {x.shape[0], x.shape[2]}};
}

Status check_mean_pool_mask(const TensorDesc& x, const TensorDesc& mask) {
  const Shape wanted{x.shape[0], (x.shape[1] + 31) / 32};
  if (mask.dtype == DType::kU32 && mask.shape == wanted) return {};
  return op_error(OpId::k_mean_pool, "mask is " + std::string(dtype_name(mask.dtype)) + " " +
                                         shape_text(mask.shape) + ", but must be U32 " +
                                         shape_text(wanted) + ", one bit per token.");
}

Result<TensorId> add_mean_pool(Graph& graph, TensorId x, TensorId mask, MeanPoolAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_mean_pool(graph.tensor(x)));
  if (mask != kNoTensor) VKF_CHECK(check_mean_pool_mask(graph.tensor(x), graph.tensor(mask)));
  const bool normalize = attrs.normalize == MeanPoolAttrs::Normalize::kOn;
  Node node = make_node(OpId::k_mean_pool, attrs, normalize ? "normalize=on" : "normalize=off");
  node.inputs = {x, mask};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_mean_pool(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool has_mask = node.inputs[1] != kNoTensor;
  const bool normalize = attrs_of<MeanPoolAttrs>(node).normalize == MeanPoolAttrs::Normalize::kOn;
  const MeanPoolParams params{.batch = static_cast<uint32_t>(x.shape[0]),
                              .tokens = static_cast<uint32_t>(x.shape[1]),
                              .width = static_cast<uint32_t>(x.shape[2]),
                              .normalize = normalize ? 1u : 0u};
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::mean_pool_row__f32_none_f32_subgroup
                                                  : KernelId::mean_pool_row__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {has_mask ? node.inputs[1] : node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  d.spec = {row_local_size(context.caps, params.width), has_mask ? 1u : 0u};
  set_row_groups(context, d, params.batch, 1);
  const double elements = static_cast<double>(element_count(x.shape)) * (normalize ? 2.0 : 1.0);
  d.flops = elements;
  d.bytes = 4.0 * elements + 4.0 * params.batch * params.width;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
