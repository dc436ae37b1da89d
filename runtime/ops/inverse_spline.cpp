#include "ops/inverse_spline.h"

#include <cmath>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/spline.h"

namespace vkformer {
namespace {

constexpr uint32_t kLeastLocalSize = 64;  // elements of a workgroup, where there are as many

}  // namespace

Result<TensorDesc> check_inverse_spline(const TensorDesc& x, const TensorDesc& params,
                                        InverseSplineAttrs attrs) {
  VKF_CHECK(check_floats(OpId::k_inverse_spline, "x", x, 0));
  VKF_CHECK(check_floats(OpId::k_inverse_spline, "params", params, 1));
  if (attrs.bins < 1 || attrs.bins > kMostSplineBins) {
    return op_error(OpId::k_inverse_spline,
                    message({"There are ", attrs.bins, " bins, but they must be from 1 to ",
                             kMostSplineBins, "."}));
  }
  if (!(attrs.bound > 0.0f) || !std::isfinite(attrs.bound)) {
    return op_error(OpId::k_inverse_spline,
                    message({"The bound is ", attrs.bound, ", but must be finite and above 0."}));
  }
  Shape wanted = x.shape;
  wanted.push_back(3 * int64_t{attrs.bins} - 1);
  if (params.shape != wanted) {
    return op_error(
        OpId::k_inverse_spline,
        message({"params has shape ", shape_text(params.shape), ", but x ", shape_text(x.shape),
                 " with ", attrs.bins, " bins asks for ", shape_text(wanted), "."}));
  }
  return TensorDesc{"inverse_spline", DType::kF32, x.shape};
}

Result<TensorId> add_inverse_spline(Graph& graph, TensorId x, TensorId params,
                                    InverseSplineAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_inverse_spline(graph.tensor(x), graph.tensor(params), attrs));
  Node node = make_node<OpId::k_inverse_spline>(
      attrs, message({"bins=", attrs.bins, " bound=", attrs.bound}));
  node.inputs = {x, params};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_inverse_spline(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[inverse_spline] There is no kernel for a decoding step; add it to a full pass.");
  }
  const auto& attrs = attrs_of<InverseSplineAttrs>(node);
  SplineParams params{};
  params.count = static_cast<uint32_t>(element_count(context.desc(node.outputs[0]).shape));
  params.bins = attrs.bins;
  params.bound = attrs.bound;
  const uint32_t local =
      row_local_size(context.caps, std::max(kLeastLocalSize, std::min(params.count, 256u)));
  Dispatch d = make_row_dispatch(context, node, KernelId::inverse_spline_element__f32_none_f32,
                                 (uint64_t{params.count} + local - 1) / local, local);
  d.set_constants(WorkgroupConstants{local});
  d.set_push(params);
  const double elements = static_cast<double>(params.count);
  d.flops = elements * (60.0 * attrs.bins + 40.0);
  d.bytes = 4.0 * elements * (6.0 * attrs.bins + 2.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
