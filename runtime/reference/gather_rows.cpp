#include "reference/gather_rows.h"

#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> gather_rows(const Array& x, const Array& indices, const Array* addend) {
  VKF_CHECK(check_array(x, "gather_rows", "x"));
  VKF_CHECK(check_array(indices, "gather_rows", "indices"));
  if (x.rank() < 1) return invalid_argument("[gather_rows] x is a scalar; it must have rows.");
  const int64_t width = x.dim(-1);
  if (addend) {
    VKF_CHECK(check_array(*addend, "gather_rows", "addend"));
    if (addend->rank() != 2 || addend->dim(0) < 1 || addend->dim(1) != width) {
      return invalid_argument(
          message({"[gather_rows] The addend has shape ", shape_text(addend->shape),
                   "; it must have two axes and the width of x, ", width, "."}));
    }
  }
  Shape shape = indices.shape;
  shape.push_back(width);
  Array y = filled(shape, 0.0);
  const double rows = width == 0 ? 0.0 : static_cast<double>(x.size() / width);
  for (int64_t n = 0; n < indices.size(); ++n) {
    for (int64_t d = 0; d < width; ++d) {
      double& value = y[n * width + d];
      if (indices[n] >= 0 && indices[n] < rows) {
        value = x[static_cast<int64_t>(indices[n]) * width + d];
      }
      if (addend) value += (*addend)[n % addend->dim(0) * width + d];
    }
  }
  return y;
}

}  // namespace vkformer::reference
