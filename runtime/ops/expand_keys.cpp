#include "ops/expand_keys.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/expand_keys.h"

namespace vkformer {
namespace {

int64_t shared_width(const TensorDesc& shared, const ExpandKeysAttrs& attrs) {
  return attrs.shared_width > 0 ? int64_t{attrs.shared_width} : shared.shape.back();
}

}  // namespace

Result<TensorDesc> check_expand_keys(const TensorDesc& q, const TensorDesc& shared,
                                     const TensorDesc& kv, const ExpandKeysAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_expand_keys, "q", q, 1));
  VKF_CHECK(check_floats(OpId::k_expand_keys, "shared", shared, 1));
  VKF_CHECK(check_floats(OpId::k_expand_keys, "kv", kv, 1));
  const int64_t heads = attrs.heads, values = int64_t{attrs.heads} * attrs.value_width;
  const int64_t joint = shared_width(shared, attrs);
  const int64_t own = q.shape.back() - heads * joint;
  const bool widths = heads >= 1 && joint <= shared.shape.back() && attrs.value_width >= 1 &&
                      q.shape.back() % heads == 0 && own >= 0 && kv.shape.back() == own + values;
  const bool rows =
      row_count(q.shape) == row_count(shared.shape) && row_count(q.shape) == row_count(kv.shape);
  if (!widths || !rows) {
    return op_error(OpId::k_expand_keys,
                    message({"q has shape ", shape_text(q.shape), ", shared ",
                             shape_text(shared.shape), " and kv ", shape_text(kv.shape),
                             ", which do not go together for ", heads, " heads with ", joint,
                             " shared columns and values of ", attrs.value_width, " columns."}));
  }
  Shape shape = q.shape;
  shape.back() = 2 * q.shape.back() + values;
  return TensorDesc{"expand_keys", DType::kF32, std::move(shape)};
}

Result<TensorId> add_expand_keys(Graph& graph, const ExpandKeysInputs& in,
                                 const ExpandKeysAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_expand_keys(graph.tensor(in.q), graph.tensor(in.shared),
                                               graph.tensor(in.kv), attrs));
  Node node = make_node<OpId::k_expand_keys>(
      attrs, message({"H=", attrs.heads, " Ev=", attrs.value_width}));
  node.inputs = {in.q, in.shared, in.kv};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_expand_keys(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<ExpandKeysAttrs>(node);
  const Shape& q = context.desc(node.inputs[0]).shape;
  const uint64_t rows = row_count(q);
  ExpandKeysParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.heads = attrs.heads;
  const TensorDesc& shared = context.desc(node.inputs[1]);
  params.joint = static_cast<uint32_t>(shared_width(shared, attrs));
  params.shared_stride = static_cast<uint32_t>(shared.shape.back());
  params.value_width = attrs.value_width;
  params.q_width = static_cast<uint32_t>(q.back());
  params.own = params.q_width / params.heads - params.joint;
  params.width = 2 * params.q_width + params.heads * params.value_width;
  Dispatch d =
      make_run_dispatch(context, node, KernelId::expand_keys_run__f32_none_f32, rows, params.width);
  d.set_push(params);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
