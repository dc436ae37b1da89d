#include "ops/head_norm.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/head_norm.h"

namespace vkformer {
namespace {

using HeadNormKind = HeadNormAttrs::Kind;

}  // namespace

Result<TensorDesc> check_head_norm(const TensorDesc& x, const TensorDesc& gain,
                                   const HeadNormAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_head_norm, "x", x, 1));
  VKF_CHECK(check_floats(OpId::k_head_norm, "gain", gain, 2));
  const Shape& g = gain.shape;
  if (g.size() != 2 || g[0] < 1 || g[1] < 1 ||
      int64_t{attrs.first} + g[0] * g[1] > x.shape.back()) {
    return op_error(OpId::k_head_norm,
                    message({"gain has shape ", shape_text(g),
                             ", but must be (G, E) with at least "
                             "one head, and G E columns from column ",
                             attrs.first, " on must lie in a row of x ", shape_text(x.shape)}));
  }
  if (!(attrs.epsilon >= 0)) {
    return op_error(OpId::k_head_norm,
                    message({"epsilon is ", attrs.epsilon, ", but must not be negative"}));
  }
  return TensorDesc{"head_norm", DType::kF32, x.shape};
}

Result<TensorId> add_head_norm(Graph& graph, TensorId x, TensorId gain,
                               const HeadNormAttrs& attrs) {
  const Shape& heads = graph.tensor(gain).shape;
  VKF_ASSIGN(TensorDesc out, check_head_norm(graph.tensor(x), graph.tensor(gain), attrs));
  Node node = make_node<OpId::k_head_norm>(
      attrs, "heads=" + std::to_string(heads[0]) + "x" + std::to_string(heads[1]) +
                 " first=" + std::to_string(attrs.first) +
                 (attrs.kind == HeadNormKind::kCentered ? " centered" : " rms") +
                 " epsilon=" + number_text(attrs.epsilon));
  node.inputs = {x, gain};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_head_norm(LowerContext& context, const Node& node) {
  const HeadNormAttrs& attrs = attrs_of<HeadNormAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const Shape& heads = context.desc(node.inputs[1]).shape;
  const HeadNormParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                              .width = static_cast<uint32_t>(x.shape.back()),
                              .first = attrs.first,
                              .heads = static_cast<uint32_t>(heads[0]),
                              .head_width = static_cast<uint32_t>(heads[1]),
                              .epsilon = attrs.epsilon};
  Dispatch d =
      make_dispatch(node, context.caps.subgroup() ? KernelId::head_norm_row__f32_f32_f32_subgroup
                                                  : KernelId::head_norm_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(params);
  const uint32_t copied = params.width - params.heads * params.head_width;
  d.set_constants(HeadNormConstants{
      .local_size = row_local_size(context.caps, std::max(params.head_width, copied)),
      .centered = attrs.kind == HeadNormKind::kCentered});
  set_row_groups(context, d, params.rows, 1);
  d.groups[2] = params.heads + (copied > 0 ? 1 : 0);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = 6.0 * elements;
  d.bytes = 8.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
