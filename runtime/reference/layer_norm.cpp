#include "reference/layer_norm.h"

#include <cmath>

#include "base/check.h"

namespace vkformer::reference {

Result<Array> layer_norm(const Array& x, const LayerNormOptions& options) {
  VKF_CHECK(check_array(x, "layer_norm", "x"));
  if (x.rank() < 1) {
    return invalid_argument("[layer_norm] x is a scalar; it needs at least one axis.");
  }
  const int64_t width = x.dim(-1);
  if (options.gain) VKF_CHECK(check_shape(*options.gain, {width}, "layer_norm", "gain"));
  if (options.bias) VKF_CHECK(check_shape(*options.bias, {width}, "layer_norm", "bias"));
  Array y = x;
  if (options.residual) {
    VKF_CHECK(check_shape(*options.residual, x.shape, "layer_norm", "residual"));
    for (int64_t i = 0; i < y.size(); ++i) y[i] += (*options.residual)[i];
  }
  for (int64_t row = 0; row < y.size(); row += width) {
    const double count = static_cast<double>(width);
    double sum = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += y[row + i];
    const double mean = sum / count;
    double squares = 0.0;
    for (int64_t i = 0; i < width; ++i) squares += (y[row + i] - mean) * (y[row + i] - mean);
    const double root = std::sqrt(squares / count + options.epsilon);
    for (int64_t i = 0; i < width; ++i) {
      const double gain = options.gain ? (*options.gain)[i] : 1.0;
      const double bias = options.bias ? (*options.bias)[i] : 0.0;
      y[row + i] = (y[row + i] - mean) / root * gain + bias;
    }
  }
  return y;
}

}  // namespace vkformer::reference
