#include "ops/unfold.h"

#include "ops/row_op.h"

namespace vkformer {
namespace {

Result<ConvSizes> sizes_of(const TensorDesc& x, const UnfoldAttrs& attrs) {
  return conv_sizes(OpId::k_unfold, x, attrs.source, attrs.window, 0);
}

}  // namespace

Result<TensorDesc> check_unfold(const TensorDesc& x, const UnfoldAttrs& attrs) {
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(x, attrs));
  const ConvPicture& p = sizes.picture;
  VKF_CHECK(conv_product(
      OpId::k_unfold, "The output",
      {sizes.batch, p.out_height, p.out_width, sizes.channels, p.kernel_height, p.kernel_width}));
  return TensorDesc{
      "unfold",
      DType::kF32,
      {int64_t{sizes.batch}, int64_t{p.out_height} * p.out_width,
       static_cast<int64_t>(uint64_t{sizes.channels} * p.kernel_height * p.kernel_width)}};
}

Result<TensorId> add_unfold(Graph& graph, TensorId x, const UnfoldAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_unfold(graph.tensor(x), attrs));
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_unfold>(attrs, window_text(sizes.picture));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_unfold(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[unfold] There is no kernel for a decoding step; unfold before it, in the encoder's pass");
  }
  const TensorDesc& x = context.desc(node.inputs[0]);
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(x, attrs_of<UnfoldAttrs>(node)));
  UnfoldParams params{};
  params.picture = sizes.picture;
  params.rows = sizes.batch * sizes.picture.out_height * sizes.picture.out_width;
  params.columns = sizes.channels * sizes.picture.kernel_height * sizes.picture.kernel_width;
  Dispatch d = make_row_dispatch(context, node, KernelId::unfold_row__f32_none_f32, params.rows,
                                 params.columns);
  const uint32_t local_size = row_local_size(context.caps, params.columns);
  params.step_x = local_size % sizes.picture.kernel_width;
  params.step_y = local_size / sizes.picture.kernel_width % sizes.picture.kernel_height;
  params.step_channel = local_size / sizes.picture.kernel_width / sizes.picture.kernel_height;
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.columns;
  d.flops = 2.0 * elements;
  d.bytes = 8.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
