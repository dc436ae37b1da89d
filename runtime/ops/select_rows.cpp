#include "ops/select_rows.h"

#include "base/message.h"
#include "base/narrow.h"
#include "ops/row_op.h"
#include "params/select_rows.h"

namespace vkformer {

Result<TensorDesc> check_select_rows(const TensorDesc& x, SelectRowsAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_select_rows, "x", x, 3));
  const bool fits = x.shape.size() == 3 && attrs.k >= 1 && attrs.k <= x.shape[1] &&
                    x.shape[0] >= 1 && x.shape[2] >= 1 && element_count(x.shape) < kMostSelected;
  if (fits) return TensorDesc{"select_rows", DType::kU32, {x.shape[0], attrs.k}};
  return op_error(OpId::k_select_rows,
                  message({"k is ", attrs.k, " and x has shape ", shape_text(x.shape),
                           ", but x must be (B, S, C) of fewer than 2^31 elements and k from 1 to "
                           "S."}));
}

Result<TensorId> add_select_rows(Graph& graph, TensorId x, SelectRowsAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_select_rows(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_select_rows>(attrs, "k=" + std::to_string(attrs.k));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_select_rows(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[select_rows] There is no kernel for a decoding step; select before it, in a full pass");
  }
  const Shape& shape = context.desc(node.inputs[0]).shape;
  SelectRowsParams params{};
  params.items = u32(shape[0]);
  params.rows = u32(shape[1]);
  params.width = u32(shape[2]);
  params.best = attrs_of<SelectRowsAttrs>(node).k;
  // An invocation goes over a row, then over all rows; every other round is the condition in it.
  if (leaves_loops(context.caps, 4 * uint64_t{std::max(params.rows, params.width)})) {
    return unsupported(message({"[select_rows] There is no kernel for ", params.rows, " rows of ",
                                params.width, " elements on a software device; take fewer"}));
  }
  const uint32_t keys =
      context.add_scratch("select_rows", 4 * uint64_t{params.items} * params.rows);
  const uint32_t local = row_local_size(context.caps, params.rows);
  const double rows = static_cast<double>(params.items) * params.rows;
  Dispatch first = make_dispatch(node, KernelId::select_rows_key__f32_none_u32);
  first.bindings = {{node.inputs[0], Access::kRead}, {keys, Access::kWrite}};
  first.set_push(params);
  first.set_constants(WorkgroupConstants{local});
  set_row_groups(context, first, params.items * uint64_t{params.rows}, local);
  first.flops = 4.0 * rows * params.width;
  first.bytes = 4.0 * rows * (params.width + 1.0);
  context.plan.dispatches.push_back(std::move(first));
  Dispatch second = make_dispatch(node, KernelId::select_rows_rank__u32_none_u32);
  second.bindings = {{keys, Access::kRead}, {node.outputs[0], Access::kWrite}};
  second.set_push(params);
  second.set_constants(WorkgroupConstants{local});
  set_row_groups(context, second, uint64_t{params.items} * ((params.rows + local - 1) / local), 1);
  second.flops = 3.0 * rows * params.rows;
  second.bytes = 4.0 * rows * params.rows / local + 4.0 * params.items * params.best;
  context.plan.dispatches.push_back(std::move(second));
  return {};
}

}  // namespace vkformer
