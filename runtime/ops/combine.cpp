#include "ops/combine.h"

#include <cmath>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/row_moves.h"

namespace vkformer {

Result<TensorDesc> check_combine(const TensorDesc& a, const TensorDesc& b, CombineAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_combine, "a", a, 0));
  VKF_CHECK(check_floats(OpId::k_combine, "b", b, 0));
  if (a.shape != b.shape) {
    return op_error(OpId::k_combine,
                    message({"a has shape ", shape_text(a.shape), " and b ", shape_text(b.shape),
                             ", but they must be the same."}));
  }
  if (!std::isfinite(attrs.alpha) || !std::isfinite(attrs.beta)) {
    return op_error(OpId::k_combine, message({"alpha is ", attrs.alpha, " and beta ", attrs.beta,
                                              ", but both must be finite."}));
  }
  if (!(attrs.most >= 0)) {
    return op_error(OpId::k_combine, message({"The limit of b is ", number_text(attrs.most),
                                              ", but must be 0, for none, or above."}));
  }
  return TensorDesc{"combine", DType::kF32, a.shape};
}

Result<TensorId> add_combine(Graph& graph, TensorId a, TensorId b, CombineAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_combine(graph.tensor(a), graph.tensor(b), attrs));
  std::string text = "alpha=" + number_text(attrs.alpha) + " beta=" + number_text(attrs.beta);
  if (attrs.most > 0) text += " most=" + number_text(attrs.most);
  Node node = make_node<OpId::k_combine>(attrs, std::move(text));
  node.inputs = {a, b};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_combine(LowerContext& context, const Node& node) {
  const TensorDesc& y = context.desc(node.outputs[0]);
  const uint64_t count = static_cast<uint64_t>(element_count(y.shape));
  // Only a decoding step needs the rows as they are; elsewhere the tensor is one long row, folded.
  constexpr uint64_t kFoldedRow = 1u << 16;
  uint64_t width = std::min(count, kFoldedRow);
  if (context.graph.is_step() && !y.shape.empty()) width = static_cast<uint64_t>(y.shape.back());
  const uint64_t rows = width == 0 ? 0 : (count + width - 1) / width;
  const CombineAttrs attrs = attrs_of<CombineAttrs>(node);
  const CombineParams params{.rows = static_cast<uint32_t>(rows),
                             .width = static_cast<uint32_t>(width),
                             .count = static_cast<uint32_t>(count),
                             .alpha = attrs.alpha,
                             .beta = attrs.beta,
                             .most = attrs.most,
                             .unused = {}};
  Dispatch d =
      make_row_dispatch(context, node, KernelId::combine_run__f32_none_f32, rows, params.width);
  const uint32_t local = row_local_size(context.caps, params.width);
  const uint32_t run = run_length(context.caps, local);
  d.set_constants(
      CombineConstants{.local_size = local, .chunk = run, .limited = attrs.most > 0 ? 1u : 0u});
  d.groups[2] = std::max(1u, (params.width + run - 1) / run);
  d.set_push(params);
  d.flops = 3.0 * static_cast<double>(count);
  d.bytes = 12.0 * static_cast<double>(count);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
