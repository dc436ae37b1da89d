#include "ops/gated_activation.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_gated_activation(const TensorDesc& x, GatedActivationAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_gated_activation, "x", x, 1));
  VKF_CHECK(check_activation(x, {attrs.kind}));
  VKF_CHECK(check_activation(x, {attrs.up}));
  if (x.shape.back() % 2 != 0) {
    return op_error(OpId::k_gated_activation,
                    message({"x has shape ", shape_text(x.shape), ", whose last dimension ",
                             x.shape.back(), " does not split into two halves."}));
  }
  Shape shape = x.shape;
  shape.back() /= 2;
  return TensorDesc{"gated_activation", DType::kF32, std::move(shape)};
}

Result<TensorId> add_gated_activation(Graph& graph, TensorId x, GatedActivationAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_gated_activation(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_gated_activation>(
      attrs,
      std::string("kind=") + activation_name(attrs.kind) +
          (attrs.pairs == GatePairs::kPairs ? " pairs" : "") +
          (attrs.up == ActivationKind::kNone ? std::string()
                                             : std::string(" up=") + activation_name(attrs.up)));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_gated_activation(LowerContext& context, const Node& node) {
  const TensorDesc& y = context.desc(node.outputs[0]);
  const uint64_t rows = row_count(y.shape);
  const ElementParams params{.rows = static_cast<uint32_t>(rows),
                             .width = static_cast<uint32_t>(y.shape.back()),
                             .count = static_cast<uint32_t>(element_count(y.shape)),
                             .unused = 0};
  Dispatch d = make_row_dispatch(context, node, KernelId::gated_activation_run__f32_none_f32, rows,
                                 params.width);
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  const auto& attrs = attrs_of<GatedActivationAttrs>(node);
  d.set_constants(GatedActivationConstants{.local_size = local,
                                           .kind = static_cast<uint32_t>(attrs.kind),
                                           .chunk = run,
                                           .pairs = attrs.pairs == GatePairs::kPairs,
                                           .up = static_cast<uint32_t>(attrs.up)});
  d.groups[2] = std::max(1u, (params.width + run - 1) / run);
  d.set_push(params);
  d.flops = 11.0 * params.count;
  d.bytes = 12.0 * params.count;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
