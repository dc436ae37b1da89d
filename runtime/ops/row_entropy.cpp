#include "ops/row_entropy.h"

#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_row_entropy(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_row_entropy, "x", x, 1));
  return TensorDesc{"row_entropy", DType::kF32, Shape(x.shape.begin(), x.shape.end() - 1)};
}

Result<TensorId> add_row_entropy(Graph& graph, TensorId x) {
  VKF_ASSIGN(TensorDesc out, check_row_entropy(graph.tensor(x)));
  Node node = make_node<OpId::k_row_entropy>(RowEntropyAttrs{}, "");
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_row_entropy(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const RowParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                         .width = static_cast<uint32_t>(x.shape.back()),
                         .best = 0,
                         .unused = 0};
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::row_entropy_row__f32_none_f32_subgroup
                                                : KernelId::row_entropy_row__f32_none_f32,
                        params.rows, params.width);
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = 6.0 * elements;
  d.bytes = 4.0 * elements + 4.0 * params.rows;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
