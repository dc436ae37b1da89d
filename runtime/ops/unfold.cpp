#include "ops/unfold.h"

#include <cmath>

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostDilation = 1 << 20;  // far below what a kernel can count
constexpr uint32_t kMostColumn = 1 << 30;

// The window as the kernel covers it, holes included.
Result<ConvSizes> sizes_of(const TensorDesc& x, const UnfoldAttrs& attrs) {
  const uint64_t wide = (attrs.window.kernel_width - 1ull) * attrs.dilation + 1;
  const bool fits = attrs.dilation >= 1 && attrs.dilation < kMostDilation && wide < kMostColumn;
  if (!fits || attrs.window.kernel_width == 0) {
    return op_error(OpId::k_unfold, message({"The kernel's width is ", attrs.window.kernel_width,
                                             " and its dilation ", attrs.dilation,
                                             ", but both must be from 1 to ", kMostDilation - 1,
                                             ", and cover less than ", kMostColumn, " pixels."}));
  }
  ConvWindow window = attrs.window;
  window.kernel_width = static_cast<uint32_t>(wide);
  VKF_ASSIGN(ConvSizes sizes, conv_sizes(OpId::k_unfold, x, attrs.source, window, 0));
  sizes.picture.kernel_width = attrs.window.kernel_width;
  return sizes;
}

Status check_attrs(const ConvSizes& sizes, const UnfoldAttrs& attrs) {
  const uint64_t last = uint64_t{attrs.first_column} + sizes.picture.out_width;
  if (last * attrs.window.stride_width >= kMostColumn) {
    return op_error(OpId::k_unfold, message({"The first column is ", attrs.first_column, " of ",
                                             sizes.picture.out_width, " positions, but all must ",
                                             "end before pixel ", kMostColumn, "."}));
  }
  if (std::isfinite(attrs.slope)) return {};
  return op_error(OpId::k_unfold, "The slope is not a finite number.");
}

}  // namespace

Result<TensorDesc> check_unfold(const TensorDesc& x, const UnfoldAttrs& attrs) {
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(x, attrs));
  VKF_CHECK(check_attrs(sizes, attrs));
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
  std::string text = window_text(sizes.picture);
  if (attrs.dilation > 1) text += " dilation=" + std::to_string(attrs.dilation);
  if (attrs.slope != 1.0f) text += message({" slope=", attrs.slope});
  Node node = make_node<OpId::k_unfold>(attrs, std::move(text));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_unfold(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[unfold] There is no kernel for a decoding step; unfold before it, in the encoder's pass");
  }
  const TensorDesc& x = context.desc(node.inputs[0]);
  const auto& attrs = attrs_of<UnfoldAttrs>(node);
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(x, attrs));
  UnfoldParams params{};
  params.picture = sizes.picture;
  // Beyond 0 it wraps, as positions left of the picture do.
  params.picture.pad_left -= attrs.first_column * attrs.window.stride_width;
  params.dilation = attrs.dilation;
  params.slope = attrs.slope;
  params.rows = sizes.batch * sizes.picture.out_height * sizes.picture.out_width;
  params.columns = sizes.channels * sizes.picture.kernel_height * sizes.picture.kernel_width;
  const KernelId kernel = attrs.slope == 1.0f ? KernelId::unfold_row__f32_none_f32
                                              : KernelId::unfold_sloped__f32_none_f32;
  Dispatch d = make_row_dispatch(context, node, kernel, params.rows, params.columns);
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
