#include "ops/segment_means.h"

#include "base/message.h"
#include "ops/attention.h"
#include "ops/row_op.h"
#include "params/nystrom.h"

namespace vkformer {
namespace {

Status check_sizes(const SegmentMeansAttrs& a) {
  const uint32_t sizes[] = {a.batch, a.heads, a.tokens, a.segments, a.head_width};
  const char* names[] = {"batch", "heads", "tokens", "segments", "head_width"};
  for (size_t i = 0; i < 5; ++i) {
    if (sizes[i] >= 1 && sizes[i] < (1u << 24)) continue;
    return op_error(OpId::k_segment_means,
                    message({names[i], " is ", sizes[i], ", but must be from 1 to 16777215."}));
  }
  if (a.tokens % a.segments == 0) return {};
  return op_error(OpId::k_segment_means,
                  message({a.tokens, " tokens do not divide into ", a.segments,
                           " segments of equal length; pad the sequence or choose a divisor."}));
}

}  // namespace

Result<TensorDesc> check_segment_means(const TensorDesc& x, const SegmentMeansAttrs& a) {
  VKF_CHECK(check_sizes(a));
  VKF_CHECK(check_layout(OpId::k_segment_means, x, "x", a.x,
                         std::array{a.batch, a.heads, a.tokens, a.head_width}));
  TensorDesc y{"segment_means", DType::kF32, a.y_shape};
  VKF_CHECK(check_layout(OpId::k_segment_means, y, "y", a.y,
                         std::array{a.batch, a.heads, a.segments, a.head_width}));
  return y;
}

Result<TensorId> add_segment_means(Graph& graph, TensorId x, const SegmentMeansAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_segment_means(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_segment_means>(
      attrs, "S=" + std::to_string(attrs.tokens) + " segments=" + std::to_string(attrs.segments) +
                 " H=" + std::to_string(attrs.heads));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_segment_means(LowerContext& context, const Node& node) {
  const SegmentMeansAttrs& a = attrs_of<SegmentMeansAttrs>(node);
  const SegmentMeansParams params{.x = a.x,
                                  .y = a.y,
                                  .rows = a.batch * a.segments,
                                  .segments = a.segments,
                                  .span = a.tokens / a.segments,
                                  .width = a.head_width,
                                  .columns = a.heads * a.head_width};
  if (too_many_passes(context.caps, params.span, 1)) {
    return unsupported(message({"[segment_means] There is no kernel for segments of ", params.span,
                                " tokens on a software device; use more landmarks"}));
  }
  Dispatch d = make_row_dispatch(context, node, KernelId::segment_means_column__f32_none_f32,
                                 params.rows, params.columns);
  const uint32_t local = row_local_size(context.caps, params.columns);
  d.groups[2] = (params.columns + local - 1) / local;
  d.set_push(params);
  const double elements = static_cast<double>(a.batch) * a.tokens * params.columns;
  d.flops = elements;
  d.bytes = 4.0 * (elements + static_cast<double>(params.rows) * params.columns);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
