#include "ops/max_pool.h"

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

// Pixels of a window, so that no invocation's loop is long.
constexpr uint64_t kMostWindow = 1 << 12;

Result<ConvSizes> pool_sizes(const TensorDesc& x, const MaxPoolAttrs& attrs) {
  return conv_sizes(OpId::k_max_pool, x, attrs.source, attrs.window, 0);
}

// Does every window along an axis cover a pixel?
bool window_covers(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t out) {
  return pad < kernel && uint64_t{out - 1} * stride < uint64_t{size} + pad;
}

}  // namespace

Result<TensorDesc> check_max_pool(const TensorDesc& x, const MaxPoolAttrs& attrs) {
  VKF_ASSIGN(const ConvSizes sizes, pool_sizes(x, attrs));
  const ConvPicture& p = sizes.picture;
  if (uint64_t{p.kernel_height} * p.kernel_width > kMostWindow) {
    return op_error(OpId::k_max_pool,
                    message({"The window has ", p.kernel_height, " x ", p.kernel_width,
                             " pixels, but at most ", kMostWindow, " are supported."}));
  }
  if (!window_covers(p.height, p.kernel_height, p.stride_height, p.pad_top, p.out_height) ||
      !window_covers(p.width, p.kernel_width, p.stride_width, p.pad_left, p.out_width)) {
    return op_error(
        OpId::k_max_pool,
        message({"A window of ", window_text(p), " lies outside a picture of ", p.height, " x ",
                 p.width, " pixels; every window must cover one of them."}));
  }
  VKF_CHECK(conv_product(OpId::k_max_pool, "The output",
                         {sizes.batch, p.out_height, p.out_width, sizes.channels}));
  return TensorDesc{
      "max_pool",
      DType::kF32,
      {int64_t{sizes.batch}, int64_t{p.out_height} * p.out_width, int64_t{sizes.channels}}};
}

Result<TensorId> add_max_pool(Graph& graph, TensorId x, const MaxPoolAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_max_pool(graph.tensor(x), attrs));
  VKF_ASSIGN(const ConvSizes sizes, pool_sizes(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_max_pool>(attrs, window_text(sizes.picture));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_max_pool(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[max_pool] There is no kernel for a decoding step; pool before it, in the encoder's pass");
  }
  VKF_ASSIGN(const ConvSizes sizes,
             pool_sizes(context.desc(node.inputs[0]), attrs_of<MaxPoolAttrs>(node)));
  PoolParams params{};
  params.picture = sizes.picture;
  params.rows = sizes.batch * sizes.picture.out_height * sizes.picture.out_width;
  params.channels = sizes.channels;
  Dispatch d = make_row_dispatch(context, node, KernelId::max_pool_row__f32_none_f32, params.rows,
                                 params.channels);
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.channels;
  const double window =
      static_cast<double>(sizes.picture.kernel_height) * sizes.picture.kernel_width;
  d.flops = elements * window;
  d.bytes = 4.0 * elements * (window + 1.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
