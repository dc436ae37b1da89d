#include "ops/argmax.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_argmax(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_argmax, "x", x, 1));
  if (x.shape.back() == 0) {
    return op_error(OpId::k_argmax, message({"x has shape ", shape_text(x.shape),
                                             ", but its last dimension must be at least 1."}));
  }
  return TensorDesc{"argmax", DType::kU32, Shape(x.shape.begin(), x.shape.end() - 1)};
}

Result<TensorId> add_argmax(Graph& graph, TensorId x) {
  VKF_ASSIGN(TensorDesc out, check_argmax(graph.tensor(x)));
  Node node = make_node<OpId::k_argmax>(ArgmaxAttrs{}, "");
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_argmax(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const RowParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                         .width = static_cast<uint32_t>(x.shape.back()),
                         .best = 0,
                         .unused = 0};
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::argmax_row__f32_none_u32_subgroup
                                                : KernelId::argmax_row__f32_none_u32,
                        params.rows, params.width);
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = elements;
  d.bytes = 4.0 * elements + 4.0 * params.rows;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
