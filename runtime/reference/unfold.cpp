#include "reference/unfold.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// x[b, c, y, w], 0 outside the picture.
double pixel(const Array& x, int64_t plane, int64_t y, int64_t w) {
  if (y < 0 || y >= x.dim(2) || w < 0 || w >= x.dim(3)) return 0.0;
  return x[(plane * x.dim(2) + y) * x.dim(3) + w];
}

}  // namespace

int64_t window_positions(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t given) {
  if (given > 0) return given;
  const int64_t room = size + 2 * pad - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

Result<Array> unfold(const Array& x, const WindowOptions& o) {
  VKF_CHECK(check_array(x, "unfold", "x"));
  if (x.rank() != 4) {
    return invalid_argument(
        message({"[unfold] x has shape ", shape_text(x.shape),
                 "; it must have four dimensions: batch, channels, height, width."}));
  }
  if (o.kernel_height < 1 || o.kernel_width < 1 || o.stride_height < 1 || o.stride_width < 1) {
    return invalid_argument("[unfold] Kernel and stride must be at least 1.");
  }
  const int64_t oh =
      window_positions(x.dim(2), o.kernel_height, o.stride_height, o.pad_top, o.out_height);
  const int64_t ow = window_positions(x.dim(3), (o.kernel_width - 1) * o.dilation + 1,
                                      o.stride_width, o.pad_left, o.out_width);
  const int64_t columns = x.dim(1) * o.kernel_height * o.kernel_width;
  Array y = filled({x.dim(0), oh * ow, columns}, 0.0);
  int64_t at = 0;
  for (int64_t row = 0; row < x.dim(0) * oh * ow; ++row) {
    const int64_t batch = row / (oh * ow);
    const int64_t top = row / ow % oh * o.stride_height - o.pad_top;
    const int64_t left = (o.first_column + row % ow) * o.stride_width - o.pad_left;
    for (int64_t c = 0; c < x.dim(1); ++c) {
      for (int64_t ky = 0; ky < o.kernel_height; ++ky) {
        for (int64_t kx = 0; kx < o.kernel_width; ++kx) {
          const double value = pixel(x, batch * x.dim(1) + c, top + ky, left + kx * o.dilation);
          y[at++] = value < 0 ? value * o.slope : value;
        }
      }
    }
  }
  return y;
}

Array channels_last(const Array& x) {
  const int64_t pixels = x.dim(2) * x.dim(3);
  Array y = filled({x.dim(0), x.dim(2), x.dim(3), x.dim(1)}, 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t batch = i / (x.dim(1) * pixels);
    y[(batch * pixels + i % pixels) * x.dim(1) + i / pixels % x.dim(1)] = x[i];
  }
  return y;
}

}  // namespace vkformer::reference
