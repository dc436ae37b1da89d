#include "reference/argmax.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

int64_t argmax_row(std::span<const double> row) {
  size_t best = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) return static_cast<int64_t>(i);
    if (row[i] > row[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

Result<Array> argmax(const Array& x) {
  VKF_CHECK(check_array(x, "argmax", "x"));
  if (x.rank() < 1 || x.dim(-1) == 0) {
    return invalid_argument(message({"[argmax] x has shape ", shape_text(x.shape),
                                     "; its last axis must have at least one element."}));
  }
  Array indices = filled(Shape(x.shape.begin(), x.shape.end() - 1), 0.0);
  const size_t width = static_cast<size_t>(x.dim(-1));
  for (size_t row = 0; row < indices.data.size(); ++row) {
    const auto values = std::span(x.data).subspan(row * width, width);
    indices.data[row] = static_cast<double>(argmax_row(values));
  }
  return indices;
}

}  // namespace vkformer::reference
