#include "reference/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

void softmax_row(std::span<double> scores) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  double highest = kMasked;
  bool has_nan = false;
  for (double score : scores) {
    highest = std::max(highest, score);
    has_nan = has_nan || std::isnan(score);
  }
  // Infinity less infinity is none either: both make every entry of the row NaN but masked ones.
  if (has_nan || highest == -kMasked) highest = std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  for (double& score : scores) {
    score = score == kMasked ? 0.0 : std::exp(score - highest);
    sum += score;
  }
  for (double& score : scores) {
    if (score != 0.0) score /= sum;
  }
}

Status check_temperature(double temperature, std::string_view op) {
  if (temperature > 0.0 && std::isfinite(temperature)) return {};
  return invalid_argument(message(
      {"[", op, "] The temperature is ", temperature, "; it must be a finite number above 0."}));
}

Result<Array> softmax(const Array& x, const SoftmaxOptions& options) {
  VKF_CHECK(check_array(x, "softmax", "x"));
  VKF_CHECK(check_temperature(options.temperature, "softmax"));
  if (x.rank() < 1 || x.rank() > 4) {
    return invalid_argument(message(
        {"[softmax] x has shape ", shape_text(x.shape), "; it must have one to four axes."}));
  }
  Shape shape(4, 1);
  std::copy(x.shape.begin(), x.shape.end(), shape.end() - x.rank());
  VKF_ASSIGN(const Array allowed, allowed_pairs(shape, options.masks, "softmax"));
  Array bias;
  if (options.bias) {
    VKF_ASSIGN(bias, broadcast_to(*options.bias, shape, "softmax", "bias"));
  }
  Array y = x;
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] / options.temperature + (options.bias ? bias[i] : 0.0);
    const double count = pair_count(shape, options.masks, i);
    if (count > 0.0) y[i] += std::log(count);
    if (allowed[i] == 0.0) y[i] = -std::numeric_limits<double>::infinity();
  }
  const size_t keys = static_cast<size_t>(shape[3]);
  for (size_t row = 0; row < y.data.size(); row += keys) {
    softmax_row(std::span(y.data).subspan(row, keys));
  }
  return y;
}

}  // namespace vkformer::reference
