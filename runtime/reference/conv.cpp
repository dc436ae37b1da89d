#include "reference/conv.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

Status check_inputs(const Array& x, const Array& weight, const ConvOptions& o) {
  VKF_CHECK(check_array(x, "conv", "x"));
  VKF_CHECK(check_array(weight, "conv", "weight"));
  const bool fit = x.rank() == 4 && weight.rank() == 4 && o.groups > 0 &&
                   x.dim(1) == weight.dim(1) * o.groups && weight.dim(0) % o.groups == 0 &&
                   o.window.stride_height > 0 && o.window.stride_width > 0;
  if (!fit) {
    return invalid_argument(
        message({"[conv] x ", shape_text(x.shape), ", weight ", shape_text(weight.shape), " and ",
                 o.groups, " groups do not belong together."}));
  }
  if (o.bias) VKF_CHECK(check_shape(*o.bias, {weight.dim(0)}, "conv", "bias"));
  return {};
}

// One output: row `w` of the weight over the group's planes of x from `plane` on.
struct ConvWindow {
  int64_t plane;
  int64_t top;
  int64_t left;
};

double weighted_sum(const Array& x, const Array& weight, int64_t o, const ConvWindow& at) {
  double sum = 0.0;
  int64_t w = o * weight.dim(1) * weight.dim(2) * weight.dim(3);
  for (int64_t c = 0; c < weight.dim(1); ++c) {
    for (int64_t y = at.top; y < at.top + weight.dim(2); ++y) {
      for (int64_t col = at.left; col < at.left + weight.dim(3); ++col, ++w) {
        if (y < 0 || y >= x.dim(2) || col < 0 || col >= x.dim(3)) continue;
        sum += weight[w] * x[((at.plane + c) * x.dim(2) + y) * x.dim(3) + col];
      }
    }
  }
  return sum;
}

}  // namespace

Result<Array> conv(const Array& x, const Array& weight, const ConvOptions& o) {
  VKF_CHECK(check_inputs(x, weight, o));
  const int64_t out = weight.dim(0);
  const int64_t oh = window_positions(x.dim(2), weight.dim(2), o.window.stride_height,
                                      o.window.pad_top, o.window.out_height);
  const int64_t ow = window_positions(x.dim(3), weight.dim(3), o.window.stride_width,
                                      o.window.pad_left, o.window.out_width);
  Array y = filled({x.dim(0), out, oh, ow}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t channel = i / (oh * ow) % out;
    const int64_t batch = i / (oh * ow * out);
    const int64_t group = channel / (out / o.groups);
    const ConvWindow at{batch * x.dim(1) + group * weight.dim(1),
                        i / ow % oh * o.window.stride_height - o.window.pad_top,
                        i % ow * o.window.stride_width - o.window.pad_left};
    y[i] = weighted_sum(x, weight, channel, at) + (o.bias ? (*o.bias)[channel] : 0.0);
  }
  return y;
}

}  // namespace vkformer::reference
