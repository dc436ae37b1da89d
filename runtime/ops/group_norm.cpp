#include "ops/group_norm.h"

#include <algorithm>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/group_norm.h"

namespace vkformer {

Result<TensorDesc> check_group_norm(const TensorDesc& x, const TensorDesc& gain_bias,
                                    GroupNormAttrs attrs) {
  const OpId op = OpId::k_group_norm;
  VKF_CHECK(check_floats(op, "x", x, 3));
  const int64_t channels = x.shape[attrs.order == ChannelOrder::kFirst ? 1 : 2];
  const int64_t tokens = x.shape[attrs.order == ChannelOrder::kFirst ? 2 : 1];
  if (x.shape.size() != 3 || x.shape[0] < 0 || channels < 1 || tokens < 1) {
    return op_error(op, message({"x has shape ", shape_text(x.shape),
                                 ", but must be (B, C, T) or (B, T, C), C and T at least 1."}));
  }
  const auto u = [](int64_t size) { return static_cast<uint64_t>(size); };
  VKF_CHECK(conv_product(op, "x", {u(channels), u(tokens), std::max<uint64_t>(1, u(x.shape[0]))}));
  if (attrs.groups == 0 || channels % attrs.groups != 0) {
    return op_error(op, message({"There are ", attrs.groups, " groups, but they must divide the ",
                                 channels, " channels."}));
  }
  if (gain_bias.dtype != DType::kF32 || gain_bias.shape != Shape{2, channels}) {
    return op_error(
        op, message({"gain_bias is ", dtype_name(gain_bias.dtype), " ", shape_text(gain_bias.shape),
                     ", but x asks for F32 ", shape_text({2, channels}), "."}));
  }
  if (!(attrs.epsilon >= 0)) {
    return op_error(op,
                    message({"epsilon is ", attrs.epsilon, ", but must not be negative or NaN."}));
  }
  return TensorDesc{"group_norm", DType::kF32, x.shape};
}

Result<TensorId> add_group_norm(Graph& graph, TensorId x, TensorId gain_bias,
                                GroupNormAttrs attrs) {
  VKF_ASSIGN(TensorDesc out, check_group_norm(graph.tensor(x), graph.tensor(gain_bias), attrs));
  Node node = make_node<OpId::k_group_norm>(
      attrs, "groups=" + std::to_string(attrs.groups) + " epsilon=" + number_text(attrs.epsilon));
  node.inputs = {x, gain_bias};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_group_norm(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[group_norm] There is no kernel for a decoding step; use it before, in the encoder's "
        "pass");
  }
  const GroupNormAttrs& attrs = attrs_of<GroupNormAttrs>(node);
  const Shape& shape = context.desc(node.inputs[0]).shape;
  const bool last = attrs.order == ChannelOrder::kLast;
  const auto channels = static_cast<uint32_t>(shape[last ? 2 : 1]);
  const auto tokens = static_cast<uint32_t>(shape[last ? 1 : 2]);
  GroupNormParams params{};
  params.rows = static_cast<uint32_t>(shape[0]) * attrs.groups;
  params.groups = attrs.groups;
  params.channels = channels;
  params.group_channels = channels / attrs.groups;
  params.inner = last ? params.group_channels : tokens;
  params.outer = last ? tokens : params.group_channels;
  params.outer_stride = last ? channels : tokens;
  params.group_stride = last ? params.group_channels : params.group_channels * tokens;
  params.batch_stride = channels * tokens;
  params.epsilon = attrs.epsilon;
  Dispatch d =
      make_row_dispatch(context, node,
                        context.caps.subgroup() ? KernelId::group_norm_row__f32_f32_f32_subgroup
                                                : KernelId::group_norm_row__f32_f32_f32,
                        params.rows, params.inner * params.outer);
  const uint32_t local = row_local_size(context.caps, params.inner * params.outer);
  params.step_outer = local / params.inner;
  params.step_inner = local % params.inner;
  d.set_constants(GroupNormConstants{.local_size = local, .channels_last = last});
  d.set_push(params);
  const double elements = static_cast<double>(element_count(shape));
  d.flops = 8.0 * elements;
  d.bytes = 16.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
