#include "reference/max_pool.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// Of one plane (H, W), the window whose first pixel is at (top, left).
double window_maximum(const Array& x, int64_t plane, int64_t top, int64_t left,
                      const WindowOptions& o) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t row = top; row < top + o.kernel_height; ++row) {
    for (int64_t column = left; column < left + o.kernel_width; ++column) {
      if (row < 0 || row >= x.dim(2) || column < 0 || column >= x.dim(3)) continue;
      const double value = x[(plane * x.dim(2) + row) * x.dim(3) + column];
      if (std::isnan(value)) return value;
      best = value > best ? value : best;
    }
  }
  return best;
}

}  // namespace

Result<Array> max_pool(const Array& x, const WindowOptions& o) {
  VKF_CHECK(check_array(x, "max_pool", "x"));
  if (x.rank() != 4) {
    return invalid_argument(
        message({"[max_pool] x has shape ", shape_text(x.shape),
                 "; it must have four dimensions: batch, channels, height, width."}));
  }
  const int64_t oh =
      window_positions(x.dim(2), o.kernel_height, o.stride_height, o.pad_top, o.out_height);
  const int64_t ow =
      window_positions(x.dim(3), o.kernel_width, o.stride_width, o.pad_left, o.out_width);
  Array y = filled({x.dim(0), oh * ow, x.dim(1)}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t c = i % x.dim(1);
    const int64_t position = i / x.dim(1) % (oh * ow);
    const int64_t plane = i / (x.dim(1) * oh * ow) * x.dim(1) + c;
    y[i] = window_maximum(x, plane, position / ow * o.stride_height - o.pad_top,
                          position % ow * o.stride_width - o.pad_left, o);
  }
  return y;
}

}  // namespace vkformer::reference
