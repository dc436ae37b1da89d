#include "reference/head_norm.h"

#include <cmath>

#include "base/check.h"

namespace vkformer::reference {

Result<Array> head_norm(const Array& x, const Array& gain, const HeadNormOptions& options) {
  VKF_CHECK(check_array(x, "head_norm", "x"));
  VKF_CHECK(check_array(gain, "head_norm", "gain"));
  if (x.rank() < 1 || gain.rank() != 2 || options.first < 0 ||
      options.first + gain.dim(0) * gain.dim(1) > x.dim(-1)) {
    return invalid_argument(
        "[head_norm] gain must be (G, E), and its heads must lie in a row of x; give x (..., W) "
        "with first + G E <= W.");
  }
  const int64_t heads = gain.dim(0), width = gain.dim(1);
  const auto count = static_cast<double>(width);
  Array y = x;
  for (int64_t row = 0; row < y.size(); row += x.dim(-1)) {
    for (int64_t g = 0; g < heads; ++g) {
      const int64_t at = row + options.first + g * width;
      double mean = 0.0;
      for (int64_t i = 0; options.centered && i < width; ++i) mean += y[at + i] / count;
      double squares = 0.0;
      for (int64_t i = 0; i < width; ++i) squares += (y[at + i] - mean) * (y[at + i] - mean);
      const double root = std::sqrt(squares / count + options.epsilon);
      for (int64_t i = 0; i < width; ++i) {
        y[at + i] = (y[at + i] - mean) / root * gain[g * width + i];
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
