#include "reference/rms_norm.h"

#include <cmath>

#include "base/check.h"

namespace vkformer::reference {

Result<Array> rms_norm(const Array& x, const RmsNormOptions& options) {
  VKF_CHECK(check_array(x, "rms_norm", "x"));
  if (x.rank() < 1) {
    return invalid_argument("[rms_norm] x is a scalar; it needs at least one axis.");
  }
  const int64_t width = x.dim(-1);
  if (options.gain) VKF_CHECK(check_shape(*options.gain, {width}, "rms_norm", "gain"));
  Array y = x;
  for (int64_t row = 0; row < y.size(); row += width) {
    double squares = 0.0;
    for (int64_t i = 0; i < width; ++i) squares += y[row + i] * y[row + i];
    const double root = std::sqrt(squares / static_cast<double>(width) + options.epsilon);
    for (int64_t i = 0; i < width; ++i) {
      y[row + i] = y[row + i] / root * (options.gain ? (*options.gain)[i] : 1.0);
    }
  }
  return y;
}

}  // namespace vkformer::reference
