#include "ops/conv_window.h"

#include <initializer_list>

#include "base/message.h"
#include "ops/row_op.h"

namespace vkformer {
namespace {

// No size of a picture or window comes near it, and sums of two stay far from 32 bits.
constexpr uint64_t kMostPixels = 1u << 24;

struct NamedSize {
  const char* name;
  uint64_t value;
  uint64_t least;
};

Status check_size(OpId op, const NamedSize& size) {
  if (size.value >= size.least && size.value < kMostPixels) return {};
  return op_error(op, message({"The ", size.name, " is ", size.value, ", but must be from ",
                               size.least, " to ", kMostPixels - 1, "."}));
}

struct Axes {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
};

Result<Axes> split_pixels(OpId op, const TensorDesc& x, const ConvSource& source,
                          uint32_t leading) {
  const bool first = source.order == ChannelOrder::kFirst;
  Axes axes{.batch = x.shape[0], .channels = x.shape[first ? 1 : 2]};
  const int64_t pixels = x.shape[first ? 2 : 1] - int64_t{leading};
  if (source.height == 0 && source.width == 0) {
    axes.height = 1;
    axes.width = pixels;
    return axes;
  }
  axes.height = source.height;
  axes.width = source.width;
  // Both are below 2^32, so their product is compared without overflow.
  if (pixels >= 0 && uint64_t{source.height} * source.width == static_cast<uint64_t>(pixels)) {
    return axes;
  }
  return op_error(op, message({"x ", shape_text(x.shape), " holds ", pixels,
                               " pixels, but a picture of ", source.height, " x ", source.width,
                               " has ", uint64_t{source.height} * source.width, "."}));
}

Result<Axes> read_axes(OpId op, const TensorDesc& x, const ConvSource& source, uint32_t leading) {
  VKF_CHECK(check_floats(op, "x", x, 3));
  const bool first = source.order == ChannelOrder::kFirst;
  if (x.shape.size() > 4) {
    return op_error(op, message({"x has shape ", shape_text(x.shape),
                                 ", but must have three or four dimensions, ",
                                 (first ? "(B, C, H, W)." : "(B, H, W, C).")}));
  }
  if (leading != 0 && (first || x.shape.size() == 4)) {
    return op_error(op, message({"There are ", leading,
                                 " leading tokens, but only x (B, T, C) can have them."}));
  }
  if (x.shape.size() == 3) return split_pixels(op, x, source, leading);
  const Axes axes = first ? Axes{x.shape[0], x.shape[1], x.shape[2], x.shape[3]}
                          : Axes{x.shape[0], x.shape[3], x.shape[1], x.shape[2]};
  const bool agrees = (source.height == 0 && source.width == 0) ||
                      (axes.height == source.height && axes.width == source.width);
  if (agrees) return axes;
  return op_error(op,
                  message({"x has shape ", shape_text(x.shape), ", but its picture was said to be ",
                           source.height, " x ", source.width, "."}));
}

struct Axis {
  const char* name;
  uint32_t size;
  uint32_t kernel;
  uint32_t stride;
  uint32_t pad;
  uint32_t positions;  // as given, 0 = as many as fit
};

// The number of positions along one axis.
Result<uint32_t> positions(OpId op, const Axis& axis) {
  if (axis.positions == 0) {
    const uint32_t padded = axis.size + 2 * axis.pad;
    if (axis.kernel <= padded) return (padded - axis.kernel) / axis.stride + 1;
    return op_error(op, message({"The kernel's ", axis.name, " is ", axis.kernel,
                                 ", but the padded picture's is only ", padded, "."}));
  }
  const uint64_t last = (axis.positions - 1ull) * axis.stride + axis.kernel;
  if (last < (1u << 30)) return axis.positions;
  return op_error(op,
                  message({"The output's ", axis.name, " is ", axis.positions, " at a stride of ",
                           axis.stride, ", far beyond the picture's ", axis.size, "."}));
}

void set_strides(const ConvSource& source, uint32_t leading, ConvSizes& sizes) {
  ConvPicture& p = sizes.picture;
  if (source.order == ChannelOrder::kFirst) {
    p.col_stride = 1;
    p.row_stride = p.width;
    p.channel_stride = p.height * p.width;
    p.batch_stride = p.channel_stride * sizes.channels;
    return;
  }
  p.channel_stride = 1;
  p.col_stride = sizes.channels;
  p.row_stride = p.width * sizes.channels;
  p.offset = leading * sizes.channels;
  p.batch_stride = p.height * p.row_stride + p.offset;
}

}  // namespace

Result<uint32_t> conv_product(OpId op, const char* what, std::initializer_list<uint64_t> factors) {
  uint64_t product = 1;
  for (uint64_t factor : factors) {
    if (factor != 0 && product > 0xffffffffull / factor) {
      return op_error(op, std::string(what) +
                              " has 2^32 elements or more, beyond what a kernel can count; use a "
                              "smaller batch or picture.");
    }
    product *= factor;
  }
  return static_cast<uint32_t>(product);
}

Result<ConvSizes> conv_sizes(OpId op, const TensorDesc& x, const ConvSource& source,
                             const ConvWindow& window, uint32_t leading) {
  VKF_ASSIGN(const Axes axes, read_axes(op, x, source, leading));
  const auto u = [](int64_t size) { return static_cast<uint64_t>(size); };
  const NamedSize checked[] = {{"batch", u(axes.batch), 0},
                               {"number of channels", u(axes.channels), 1},
                               {"picture's height", u(axes.height), 1},
                               {"picture's width", u(axes.width), 1},
                               {"kernel's height", window.kernel_height, 1},
                               {"kernel's width", window.kernel_width, 1},
                               {"stride along the height", window.stride_height, 1},
                               {"stride along the width", window.stride_width, 1},
                               {"padding at the top", window.pad_top, 0},
                               {"padding on the left", window.pad_left, 0},
                               {"number of leading tokens", leading, 0},
                               {"output's height", window.out_height, 0},
                               {"output's width", window.out_width, 0}};
  for (const NamedSize& size : checked) VKF_CHECK(check_size(op, size));
  VKF_CHECK(conv_product(
      op, "x", {u(axes.batch), u(axes.channels), u(axes.height) * u(axes.width) + leading}));
  ConvSizes sizes{.batch = static_cast<uint32_t>(axes.batch),
                  .channels = static_cast<uint32_t>(axes.channels)};
  ConvPicture& p = sizes.picture;
  p.height = static_cast<uint32_t>(axes.height);
  p.width = static_cast<uint32_t>(axes.width);
  p.kernel_height = window.kernel_height;
  p.kernel_width = window.kernel_width;
  p.stride_height = window.stride_height;
  p.stride_width = window.stride_width;
  p.pad_top = window.pad_top;
  p.pad_left = window.pad_left;
  VKF_ASSIGN(p.out_height,
             positions(op, {"height", p.height, window.kernel_height, window.stride_height,
                            window.pad_top, window.out_height}));
  VKF_ASSIGN(p.out_width, positions(op, {"width", p.width, window.kernel_width, window.stride_width,
                                         window.pad_left, window.out_width}));
  set_strides(source, leading, sizes);
  return sizes;
}

std::string window_text(const ConvPicture& p) {
  const auto pair = [](const char* name, uint32_t height, uint32_t width) {
    return std::string(name) + "=" + std::to_string(height) + "x" + std::to_string(width);
  };
  return pair("kernel", p.kernel_height, p.kernel_width) + " " +
         pair("stride", p.stride_height, p.stride_width) + " " +
         pair("pad", p.pad_top, p.pad_left) + " " + pair("out", p.out_height, p.out_width);
}

}  // namespace vkformer
