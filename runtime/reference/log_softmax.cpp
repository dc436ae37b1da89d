#include "reference/log_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace vkformer::reference {

void log_softmax_row(std::span<double> row) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  double highest = kNothing;
  bool has_nan = false;
  for (double value : row) {
    highest = std::max(highest, value);
    has_nan = has_nan || std::isnan(value);
  }
  if (highest == kNothing && !has_nan) return;
  if (has_nan) highest = std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  for (double value : row) sum += std::exp(value - highest);
  const double log_sum = std::log(sum);
  for (double& value : row) value = value - highest - log_sum;
}

Result<Array> log_softmax(const Array& x) {
  VKF_CHECK(check_array(x, "log_softmax", "x"));
  if (x.rank() < 1) {
    return invalid_argument("[log_softmax] x is a scalar; it needs at least one axis.");
  }
  Array y = x;
  const size_t width = static_cast<size_t>(x.dim(-1));
  for (size_t row = 0; row < y.data.size(); row += width) {
    log_softmax_row(std::span(y.data).subspan(row, width));
  }
  return y;
}

}  // namespace vkformer::reference
