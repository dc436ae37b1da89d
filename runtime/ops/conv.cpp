#include "ops/conv.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

Result<ConvSizes> sizes_of(const TensorDesc& x, const ConvAttrs& attrs) {
  return conv_sizes(OpId::k_conv, x, attrs.source, attrs.window, attrs.leading_tokens);
}

Status check_groups(const ConvSizes& sizes, const TensorDesc& table, uint32_t groups) {
  VKF_CHECK(check_floats(OpId::k_conv, "table", table, 2));
  const int64_t out = table.shape[0];
  if (groups == 0 || sizes.channels % groups != 0 || out < 1 || out % groups != 0) {
    return op_error(OpId::k_conv, message({"There are ", groups,
                                           " groups, but they must divide the ", sizes.channels,
                                           " channels of x and the ", out, " rows of the table."}));
  }
  VKF_ASSIGN(const uint32_t taps,
             conv_product(OpId::k_conv, "A row of the table",
                          {sizes.channels / groups, sizes.picture.kernel_height,
                           sizes.picture.kernel_width}));
  if (table.shape != Shape{out, int64_t{taps} + 1}) {
    return op_error(
        OpId::k_conv,
        message({"table has shape ", shape_text(table.shape), ", but the kernel asks for rows of ",
                 taps, " weights and a bias, ", shape_text({out, int64_t{taps} + 1}), "."}));
  }
  VKF_CHECK(conv_product(OpId::k_conv, "The table", {static_cast<uint64_t>(out), taps + 1ull}));
  return {};
}

Status check_leading(const ConvSizes& sizes, int64_t out, const ConvAttrs& attrs) {
  if (attrs.leading_tokens == 0) return {};
  if (out == sizes.channels && attrs.out_order == ChannelOrder::kLast) return {};
  return op_error(
      OpId::k_conv,
      message({"There are ", attrs.leading_tokens, " leading tokens of ", sizes.channels,
               " channels to copy, but the output has ", out, " channels",
               (attrs.out_order == ChannelOrder::kLast ? "." : ", first.")}));
}

Shape output_shape(const ConvSizes& sizes, int64_t out, size_t rank, const ConvAttrs& attrs) {
  const ConvPicture& p = sizes.picture;
  const int64_t batch = sizes.batch;
  const bool first = attrs.out_order == ChannelOrder::kFirst;
  if (rank == 4) {
    return first ? Shape{batch, out, p.out_height, p.out_width}
                 : Shape{batch, p.out_height, p.out_width, out};
  }
  const int64_t tokens = int64_t{attrs.leading_tokens} + int64_t{p.out_height} * p.out_width;
  return first ? Shape{batch, out, tokens} : Shape{batch, tokens, out};
}

ConvParams conv_params(const ConvSizes& sizes, uint32_t out, const ConvAttrs& attrs) {
  ConvParams params{};
  params.picture = sizes.picture;
  params.channels = out;
  params.group_channels = out / attrs.groups;
  params.group_inputs = sizes.channels / attrs.groups;
  params.leading = attrs.leading_tokens;
  params.copies = sizes.batch * attrs.leading_tokens;
  const uint32_t positions = sizes.picture.out_height * sizes.picture.out_width;
  if (attrs.out_order == ChannelOrder::kFirst) {
    params.y_col_stride = 1;
    params.y_row_stride = sizes.picture.out_width;
    params.y_channel_stride = positions;
    params.y_batch_stride = positions * out;
  } else {
    params.y_channel_stride = 1;
    params.y_col_stride = out;
    params.y_row_stride = sizes.picture.out_width * out;
    params.y_offset = attrs.leading_tokens * out;
    params.y_batch_stride = params.y_offset + positions * out;
  }
  return params;
}

// Positions of a line that an invocation owns: as many loads are saved, and as many registers
// taken. A software device has lanes in plenty and pays for loads.
uint32_t span_of(const DeviceCaps& caps, uint32_t out_width) {
  const uint32_t most = caps.device_class == DeviceClass::kSoftware ? 8 : 4;
  return std::min(std::bit_ceil(out_width), most);
}

// Rounds of the shader's loops for one output channel of a span. Those with a condition inside, as
// all of them have, count twice (row_kernel.h).
uint64_t rounds_of(const ConvPicture& p, uint32_t group_inputs) {
  const uint64_t line = 1ull + std::min(p.stride_width, p.kernel_width) + p.kernel_width;
  return 2 * (1 + group_inputs * (1 + p.kernel_height * line));
}

// Output channels of a workgroup. Starting one costs a software device more than a round of lanes,
// but there an invocation's loops end after a number of rounds.
uint32_t chunk_of(const DeviceCaps& caps, uint32_t local_size, uint64_t rounds) {
  if (caps.device_class != DeviceClass::kSoftware) return local_size;
  const uint64_t channels = std::max<uint64_t>(1, kMostSoftwareIterations / rounds);
  return static_cast<uint32_t>(std::min<uint64_t>(4096, channels * local_size));
}

}  // namespace

Result<TensorDesc> check_conv(const TensorDesc& x, const TensorDesc& table,
                              const ConvAttrs& attrs) {
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(x, attrs));
  VKF_CHECK(check_groups(sizes, table, attrs.groups));
  const int64_t out = table.shape[0];
  VKF_CHECK(check_leading(sizes, out, attrs));
  const ConvPicture& p = sizes.picture;
  VKF_CHECK(conv_product(OpId::k_conv, "The output",
                         {sizes.batch, uint64_t{p.out_height} * p.out_width + attrs.leading_tokens,
                          static_cast<uint64_t>(out)}));
  return TensorDesc{"conv", DType::kF32, output_shape(sizes, out, x.shape.size(), attrs)};
}

Result<TensorId> add_conv(Graph& graph, TensorId x, TensorId table, const ConvAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_conv(graph.tensor(x), graph.tensor(table), attrs));
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_conv>(
      ConvNodeAttrs{attrs}, window_text(sizes.picture) + " groups=" + std::to_string(attrs.groups));
  node.inputs = {x, table};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_conv(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[conv] There is no kernel for a decoding step; convolve before it, in the encoder's pass");
  }
  const auto& [attrs, activation] = attrs_of<ConvNodeAttrs>(node);
  VKF_ASSIGN(const ConvSizes sizes, sizes_of(context.desc(node.inputs[0]), attrs));
  const auto out = static_cast<uint32_t>(context.desc(node.inputs[1]).shape[0]);
  const ConvPicture& p = sizes.picture;
  ConvParams params = conv_params(sizes, out, attrs);
  const uint32_t span = span_of(context.caps, p.out_width);
  const uint32_t lines = sizes.batch * p.out_height;
  params.spans = lines * ((p.out_width + span - 1) / span);
  Dispatch d = make_row_dispatch(context, node, KernelId::conv_span__f32_f32_f32,
                                 uint64_t{params.spans} + params.copies, out);
  const uint64_t rounds = rounds_of(p, params.group_inputs);
  if (leaves_loops(context.caps, rounds)) {
    return unsupported(message({"[conv] There is no kernel for a kernel of ", p.kernel_height,
                                " x ", p.kernel_width, " over ", params.group_inputs,
                                " channels on this software device, whose loops end after ",
                                kMostSoftwareIterations, " rounds; use more groups"}));
  }
  const uint32_t local = row_local_size(context.caps, out);
  const uint32_t chunk = chunk_of(context.caps, local, rounds);
  d.set_constants(ConvConstants{.local_size = local,
                                .span = span,
                                .chunk = chunk,
                                .activation = static_cast<uint32_t>(activation)});
  d.groups[2] = (out + chunk - 1) / chunk;
  d.set_push(params);
  const double outputs = static_cast<double>(lines) * p.out_width * out;
  const double taps = static_cast<double>(params.group_inputs) * p.kernel_height * p.kernel_width;
  d.flops = outputs * (2.0 * taps + 10.0);
  d.bytes = 4.0 * (outputs +
                   (static_cast<double>(lines) * p.out_width) * p.kernel_height * p.stride_width *
                       sizes.channels +
                   out * (taps + 1.0));
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
