#include "ops/latent_queries.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/latent_queries.h"

namespace vkformer {

Result<TensorDesc> check_latent_queries(const TensorDesc& q, const TensorDesc& absorbed,
                                        const TensorDesc& line, const LatentQueriesAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_latent_queries, "q", q, 1));
  VKF_CHECK(check_floats(OpId::k_latent_queries, "absorbed", absorbed, 1));
  VKF_CHECK(check_floats(OpId::k_latent_queries, "line", line, 1));
  const int64_t heads = attrs.heads;
  const bool divides =
      heads >= 1 && q.shape.back() % heads == 0 && absorbed.shape.back() % heads == 0;
  const int64_t turned = divides ? line.shape.back() - absorbed.shape.back() / heads : -1;
  const bool rows = row_count(q.shape) == row_count(absorbed.shape) &&
                    row_count(q.shape) == row_count(line.shape);
  if (!rows || turned < 0 || turned > q.shape.back() / heads) {
    return op_error(
        OpId::k_latent_queries,
        message({"q has shape ", shape_text(q.shape), ", absorbed ", shape_text(absorbed.shape),
                 " and line ", shape_text(line.shape), ", which do not go together for ", heads,
                 " heads; a line must be as wide as a head of absorbed and some of q's."}));
  }
  Shape shape = q.shape;
  shape.back() = (heads + 1) * line.shape.back();
  return TensorDesc{"latent_queries", DType::kF32, std::move(shape)};
}

Result<TensorId> add_latent_queries(Graph& graph, const LatentQueriesInputs& in,
                                    const LatentQueriesAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_latent_queries(graph.tensor(in.q), graph.tensor(in.absorbed),
                                                  graph.tensor(in.line), attrs));
  Node node = make_node<OpId::k_latent_queries>(attrs, message({"H=", attrs.heads}));
  node.inputs = {in.q, in.absorbed, in.line};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_latent_queries(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<LatentQueriesAttrs>(node);
  const Shape& q = context.desc(node.inputs[0]).shape;
  const uint64_t rows = row_count(q);
  LatentQueriesParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.heads = attrs.heads;
  params.head_width = static_cast<uint32_t>(q.back()) / attrs.heads;
  params.absorbed = static_cast<uint32_t>(context.desc(node.inputs[1]).shape.back()) / attrs.heads;
  params.line = static_cast<uint32_t>(context.desc(node.inputs[2]).shape.back());
  params.width = (attrs.heads + 1) * params.line;
  Dispatch d = make_run_dispatch(context, node, KernelId::latent_queries_run__f32_none_f32, rows,
                                 params.width);
  d.set_push(params);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
