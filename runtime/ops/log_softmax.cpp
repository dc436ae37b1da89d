#include "ops/log_softmax.h"

#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_log_softmax(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_log_softmax, "x", x, 1));
  return TensorDesc{"log_softmax", DType::kF32, x.shape};
}

Result<TensorId> add_log_softmax(Graph& graph, TensorId x) {
  VKF_ASSIGN(TensorDesc out, check_log_softmax(graph.tensor(x)));
  Node node = make_node<OpId::k_log_softmax>(LogSoftmaxAttrs{}, "");
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_log_softmax(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const RowParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                         .width = static_cast<uint32_t>(x.shape.back()),
                         .best = 0,
                         .unused = 0};
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::log_softmax_row__f32_none_f32_subgroup
                                                : KernelId::log_softmax_row__f32_none_f32,
                        params.rows, params.width);
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = 15.0 * elements;
  d.bytes = 8.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
