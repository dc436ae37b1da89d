#include "ops/top_k.h"

#include "base/message.h"
#include "ops/row_kernel.h"
#include "ops/row_op.h"
#include "params/rowwise.h"

namespace vkformer {

Result<TensorDesc> check_top_k(const TensorDesc& x, TopKAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_top_k, "x", x, 1));
  const int64_t most = std::min<int64_t>(x.shape.back(), kMaxTopK);
  if (attrs.k < 1 || attrs.k > most) {
    return op_error(OpId::k_top_k,
                    message({"k is ", attrs.k, " and x has shape ", shape_text(x.shape),
                             ", but k must be from 1 to ", most, "."}));
  }
  Shape shape = x.shape;
  shape.back() = attrs.k;
  shape.push_back(2);
  return TensorDesc{"top_k", DType::kU32, std::move(shape)};
}

Result<TensorId> add_top_k(Graph& graph, TensorId x, TopKAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_top_k(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_top_k>(attrs, "k=" + std::to_string(attrs.k));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_top_k(LowerContext& context, const Node& node) {
  const TensorDesc& x = context.desc(node.inputs[0]);
  const RowParams params{.rows = static_cast<uint32_t>(row_count(x.shape)),
                         .width = static_cast<uint32_t>(x.shape.back()),
                         .best = attrs_of<TopKAttrs>(node).k,
                         .unused = 0};
  // Again for every four of the best that one invocation had.
  const uint64_t passes = uint64_t{params.best} / 4 + 1;
  if (too_many_passes(context.caps, params.width, passes)) {
    return unsupported(message({"[top_k] There is no kernel for the ", params.best, " best of ",
                                params.width, " elements on a software device; take fewer"}));
  }
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::top_k_row__f32_none_f32_subgroup
                                                : KernelId::top_k_row__f32_none_f32,
                        params.rows, params.width);
  d.set_constants(WorkgroupConstants{row_local_size(context.caps, params.width, passes)});
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.width;
  d.flops = 8.0 * elements;
  d.bytes = 4.0 * elements + 8.0 * params.rows * params.best;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
