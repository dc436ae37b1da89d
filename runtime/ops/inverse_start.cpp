#include "ops/inverse_start.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/nystrom.h"

namespace vkformer {

Result<TensorDesc> check_inverse_start(const TensorDesc& a, const TensorDesc& sums) {
  constexpr OpId kOp = OpId::k_inverse_start;
  VKF_CHECK(check_floats(kOp, "a", a, 3));
  VKF_CHECK(check_floats(kOp, "sums", sums, 3));
  if (a.shape.size() != 3 || a.shape[1] != a.shape[2] || a.shape[1] < 1 || a.shape[0] < 1) {
    return op_error(kOp,
                    message({"a has shape ", shape_text(a.shape), ", but must be (N, M, M)."}));
  }
  if (sums.shape != Shape{a.shape[0], 1, a.shape[2]}) {
    return op_error(kOp,
                    message({"sums has shape ", shape_text(sums.shape), ", but must be ",
                             shape_text({a.shape[0], 1, a.shape[2]}), ", a sum for each column."}));
  }
  return TensorDesc{"inverse_start", DType::kF32, a.shape};
}

Result<TensorId> add_inverse_start(Graph& graph, TensorId a, TensorId sums,
                                   InverseStartAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_inverse_start(graph.tensor(a), graph.tensor(sums)));
  const bool shared = attrs.maximum == InverseStartAttrs::Maximum::kShared;
  Node node = make_node<OpId::k_inverse_start>(attrs, shared ? "maximum=shared" : "maximum=own");
  node.inputs = {a, sums};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_inverse_start(LowerContext& context, const Node& node) {
  const Shape& shape = context.desc(node.inputs[1]).shape;
  const bool shared =
      attrs_of<InverseStartAttrs>(node).maximum == InverseStartAttrs::Maximum::kShared;
  const InverseStartParams params{.matrices = static_cast<uint32_t>(shape[0]),
                                  .side = static_cast<uint32_t>(shape[2]),
                                  .shared_max = shared ? 1u : 0u};
  const uint32_t sums = params.side * (shared ? params.matrices : 1u);
  const uint32_t width = std::max(params.side * params.side, sums);
  if (too_many_passes(context.caps, width, 3)) {
    return unsupported(message(
        {"[inverse_start] There is no kernel for ", params.matrices, " matrices of ", params.side,
         " landmarks on a software device; use fewer landmarks or a smaller batch"}));
  }
  Dispatch d = make_row_dispatch(context, node, KernelId::inverse_start_matrix__f32_none_f32,
                                 params.matrices, width);
  d.set_constants(WorkgroupConstants{row_local_size(context.caps, width, 3)});
  d.set_push(params);
  const double elements = static_cast<double>(params.matrices) * params.side * params.side;
  d.flops = 2.0 * elements + static_cast<double>(params.matrices) * sums;
  d.bytes = 8.0 * elements + 4.0 * static_cast<double>(params.matrices) * sums;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
