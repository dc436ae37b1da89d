#include "ops/concat_columns.h"

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {

Result<TensorDesc> check_concat_columns(const TensorDesc& a, const TensorDesc& b) {
  VKF_CHECK(check_floats(OpId::k_concat_columns, "a", a, 1));
  VKF_CHECK(check_floats(OpId::k_concat_columns, "b", b, 1));
  if (!std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin(), b.shape.end() - 1)) {
    return op_error(OpId::k_concat_columns,
                    message({"a has shape ", shape_text(a.shape), " and b ", shape_text(b.shape),
                             ", but all dimensions before the last must agree."}));
  }
  Shape shape = a.shape;
  shape.back() += b.shape.back();
  return TensorDesc{"concat_columns", DType::kF32, std::move(shape)};
}

Result<TensorId> add_concat_columns(Graph& graph, TensorId a, TensorId b) {
  VKF_ASSIGN(TensorDesc out, check_concat_columns(graph.tensor(a), graph.tensor(b)));
  Node node = make_node<OpId::k_concat_columns>(ConcatColumnsAttrs{}, "");
  node.inputs = {a, b};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_concat_columns(LowerContext& context, const Node& node) {
  // Not of y, whose rows a model may have given another shape.
  const Shape& a = context.desc(node.inputs[0]).shape;
  const uint64_t rows = row_count(a);
  ConcatColumnsParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.a_width = static_cast<uint32_t>(a.back());
  params.b_width = static_cast<uint32_t>(context.desc(node.inputs[1]).shape.back());
  const uint32_t width = params.a_width + params.b_width;
  Dispatch d =
      make_run_dispatch(context, node, KernelId::concat_columns_run__f32_none_f32, rows, width);
  d.set_push(params);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
