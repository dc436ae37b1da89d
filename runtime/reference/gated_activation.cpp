#include "reference/gated_activation.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> gated_activation(const Array& x, ActivationKind kind) {
  return gated_activation(x, kind, ActivationKind::kIdentity);
}

Result<Array> gated_activation(const Array& x, ActivationKind kind, ActivationKind up_kind) {
  VKF_CHECK(check_array(x, "gated_activation", "x"));
  if (x.rank() < 1 || x.dim(-1) % 2 != 0) {
    return invalid_argument(message({"[gated_activation] x has shape ", shape_text(x.shape),
                                     "; its last axis must be even, to split into two halves."}));
  }
  const int64_t width = x.dim(-1) / 2;
  Shape shape = x.shape;
  shape.back() = width;
  Array y = filled(shape, 0.0);
  const int64_t rows = width == 0 ? 0 : y.size() / width;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t f = 0; f < width; ++f) {
      const double gate = x[row * 2 * width + f];
      const double up = x[row * 2 * width + width + f];
      y[row * width + f] = activate(kind, gate) * activate(up_kind, up);
    }
  }
  return y;
}

}  // namespace vkformer::reference
