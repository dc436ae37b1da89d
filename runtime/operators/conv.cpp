#include "ops/conv.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/matmul.h"
#include "ops/unfold.h"
#include "weights/fold_batch_norm.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

constexpr int64_t kMostPixels = (1 << 24) - 1;

// A convolution by name, its inputs converted; of conv1d, as a picture of one row.
struct Call {
  Tensor x;                 // (B, C, H, W)
  Tensor weight;            // (out, C/groups, kh, kw)
  std::vector<float> bias;  // (out), or empty
  ConvWindow window;
  uint32_t groups = 1;
};

// The attribute `name` along height and width: one number for both, or [height, width].
Result<std::vector<uint32_t>> pair_attribute(const OperatorArguments& arguments,
                                             const std::string& name, int64_t fallback) {
  VKF_ASSIGN(std::vector<int64_t> values, arguments.attributes().get_int_list_or(name, {fallback}));
  if (values.size() == 1) values.push_back(values[0]);
  std::vector<uint32_t> pair;
  for (int64_t value : values) {
    if (values.size() != 2 || value < 0 || value > kMostPixels) {
      return arguments.error("The attribute " + name +
                             " must be one or two numbers of pixels from 0 to " +
                             std::to_string(kMostPixels) + ".");
    }
    pair.push_back(static_cast<uint32_t>(value));
  }
  if (pair.empty()) return arguments.error("The attribute " + name + " is an empty list.");
  return pair;
}

Status read_window(const OperatorArguments& arguments, size_t axes, Call& call) {
  VKF_ASSIGN(const std::vector<uint32_t> stride, pair_attribute(arguments, "stride", 1));
  VKF_ASSIGN(const std::vector<uint32_t> padding, pair_attribute(arguments, "padding", 0));
  for (size_t axis = 2; axis < 4; ++axis) {
    const int64_t kernel = call.weight.shape[axis];
    if (kernel >= 1 && kernel <= kMostPixels) continue;
    return arguments.error("W " + shape_text(call.weight.shape) + " has a kernel of size " +
                           std::to_string(kernel) + ", but it must be from 1 to " +
                           std::to_string(kMostPixels) + ".");
  }
  call.window.kernel_height = static_cast<uint32_t>(call.weight.shape[2]);
  call.window.kernel_width = static_cast<uint32_t>(call.weight.shape[3]);
  call.window.stride_height = axes == 1 ? 1 : stride[0];
  call.window.stride_width = stride[1];
  call.window.pad_top = axes == 1 ? 0 : padding[0];
  call.window.pad_left = padding[1];
  return {};
}

// Reads X and W of `axes` spatial axes (1 or 2), bias and attributes.
Result<Call> read_call(const OperatorArguments& arguments, size_t axes) {
  VKF_CHECK(arguments.check_names({"X", "W", "bias"}, {"stride", "padding", "groups"}));
  Call call;
  VKF_ASSIGN(call.x, arguments.floats("X"));
  VKF_ASSIGN(call.weight, arguments.floats("W"));
  if (call.x.shape.size() != axes + 2 || call.weight.shape.size() != axes + 2) {
    return arguments.error("X " + shape_text(call.x.shape) + " and W " +
                           shape_text(call.weight.shape) + " must have " +
                           std::to_string(axes + 2) + " dimensions, the channels second.");
  }
  if (axes == 1) {
    call.x.shape.insert(call.x.shape.begin() + 2, 1);
    call.weight.shape.insert(call.weight.shape.begin() + 2, 1);
  }
  VKF_ASSIGN(const int64_t groups, arguments.integer_or("groups", 1, 1, kMostPixels));
  call.groups = static_cast<uint32_t>(groups);
  if (call.x.shape[1] % groups != 0 || call.weight.shape[0] < 1 ||
      call.weight.shape[0] % groups != 0 || call.x.shape[1] / groups != call.weight.shape[1]) {
    return arguments.error("X " + shape_text(call.x.shape) + " in " + std::to_string(groups) +
                           " groups does not fit W " + shape_text(call.weight.shape) +
                           " (out, in/groups, ...); out and in must be multiples of groups.");
  }
  VKF_CHECK(read_window(arguments, axes, call));
  if (arguments.find("bias") != nullptr) {
    VKF_ASSIGN(const Tensor bias, arguments.floats("bias"));
    if (bias.shape != Shape{call.weight.shape[0]}) {
      return arguments.error("bias has shape " + shape_text(bias.shape) + ", but W asks for " +
                             shape_text({call.weight.shape[0]}) + ".");
    }
    VKF_ASSIGN(call.bias, bias.to_floats());
  }
  return call;
}

// Y (B, OH, OW, out) or (B, OW, out) -> (B, out, OH, OW) or (B, out, OW).
Result<TensorMap> put_channels_first(TensorMap outputs) {
  Tensor& y = outputs["Y"];
  Shape shape = y.shape;
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  const auto channels = static_cast<size_t>(y.shape.back());
  const auto pixels =
      static_cast<size_t>(element_count(Shape(y.shape.begin() + 1, y.shape.end() - 1)));
  Tensor moved = Tensor::zeros(y.dtype, std::move(shape));
  for (size_t i = 0; i < y.bytes.size() / 4; ++i) {
    const size_t plane = i / (channels * pixels) * channels + i % channels;
    std::memcpy(moved.bytes.data() + 4 * (plane * pixels + i / channels % pixels),
                y.bytes.data() + 4 * i, 4);
  }
  y = std::move(moved);
  return outputs;
}

// As models do it: unfolded, then a packed linear layer, whose output has the channels last.
Result<PreparedOperator> prepare_dense(const OperatorArguments& arguments, size_t axes, Call call) {
  PreparedOperator op;
  const Shape& w = call.weight.shape;
  VKF_ASSIGN(const std::vector<float> values, call.weight.to_floats());
  VKF_ASSIGN(const MatrixFormat format, arguments.weight_format());
  const int64_t k = w[1] * w[2] * w[3];
  const TensorId x = op.bind("X", std::move(call.x));
  VKF_ASSIGN(const TensorId rows, add_unfold(op.graph, x, {.window = call.window}));
  VKF_ASSIGN(const ConvSizes sizes,
             conv_sizes(OpId::k_unfold, op.graph.tensor(x), {}, call.window, 0));
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {w[0], k, MatrixOrder::kOutIn}, call.bias, format));
  const LinearWeight weight{.tensor = op.bind("W", packed_tensor(packed)),
                            .n = static_cast<uint32_t>(w[0]),
                            .k = static_cast<uint32_t>(k),
                            .bias_offset = packed.bias_offset,
                            .format = format};
  VKF_ASSIGN(const TensorId y, add_linear(op.graph, rows, weight, {}));
  op.name_output(y, "Y");
  Shape shape = {sizes.batch, sizes.picture.out_height, sizes.picture.out_width, w[0]};
  if (axes == 1) shape.erase(shape.begin() + 1);
  op.graph.tensor(y).shape = std::move(shape);
  op.finish = put_channels_first;
  return op;
}

Result<PreparedOperator> prepare_grouped(size_t axes, Call call) {
  PreparedOperator op;
  const Shape& w = call.weight.shape;
  VKF_ASSIGN(const std::vector<float> values, call.weight.to_floats());
  VKF_ASSIGN(const std::vector<float> table, pack_conv({"W", w[0], values, call.bias}));
  ConvAttrs attrs;
  attrs.source.order = ChannelOrder::kFirst;
  attrs.out_order = ChannelOrder::kFirst;
  attrs.window = call.window;
  attrs.groups = call.groups;
  const TensorId x = op.bind("X", std::move(call.x));
  const TensorId table_id =
      op.bind("W", Tensor::from_floats({w[0], w[1] * w[2] * w[3] + 1}, table));
  VKF_ASSIGN(const TensorId y, add_conv(op.graph, x, table_id, attrs));
  op.name_output(y, "Y");
  Shape& shape = op.graph.tensor(y).shape;
  if (axes == 1) shape.erase(shape.begin() + 2);
  return op;
}

Result<PreparedOperator> prepare_conv(const OperatorArguments& arguments, size_t axes) {
  VKF_ASSIGN(Call call, read_call(arguments, axes));
  if (call.groups > 1) return prepare_grouped(axes, std::move(call));
  return prepare_dense(arguments, axes, std::move(call));
}

}  // namespace

// conv1d (Convolution)
// attributes: `stride` (1), `padding` (0), `groups` (1)
// inputs:     X (B, C, T), *weight* W (out, C/groups, k); optional bias (out)
// outputs:    Y (B, out, OT)
// computes:   cross-correlation with zeros outside X; OT = (T + 2 · padding − k) / stride + 1
Result<PreparedOperator> prepare_conv1d(const OperatorArguments& arguments) {
  return prepare_conv(arguments, 1);
}

// conv2d (Convolution)
// attributes: the same, each one number or [height, width]
// inputs:     X (B, C, height, width), *weight* W (out, C/groups, kh, kw); optional bias (out)
// outputs:    Y (B, out, OH, OW)
// computes:   the same along both axes
Result<PreparedOperator> prepare_conv2d(const OperatorArguments& arguments) {
  return prepare_conv(arguments, 2);
}

}  // namespace vkformer
