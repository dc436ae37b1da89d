#include "reference/group_norm.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> group_norm(const Array& x, const Array& gain, const Array& bias,
                         const GroupNormOptions& options) {
  VKF_CHECK(check_array(x, "group_norm", "x"));
  if (x.rank() != 3 || options.groups < 1 || x.dim(1) % options.groups != 0) {
    return invalid_argument(message({"[group_norm] x ", shape_text(x.shape),
                                     " must be (B, C, T), C in ", options.groups, " groups."}));
  }
  VKF_CHECK(check_shape(gain, {x.dim(1)}, "group_norm", "gain"));
  VKF_CHECK(check_shape(bias, {x.dim(1)}, "group_norm", "bias"));
  // A group's elements lie one after the other.
  const int64_t count = x.dim(1) / options.groups * x.dim(2);
  Array y = x;
  for (int64_t first = 0; count > 0 && first < x.size(); first += count) {
    double mean = 0.0;
    for (int64_t i = first; i < first + count; ++i) mean += x[i];
    mean /= static_cast<double>(count);
    double variance = 0.0;
    for (int64_t i = first; i < first + count; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double divisor = std::sqrt(variance / static_cast<double>(count) + options.epsilon);
    for (int64_t i = first; i < first + count; ++i) {
      const int64_t channel = i / x.dim(2) % x.dim(1);
      y[i] = (x[i] - mean) / divisor * gain[channel] + bias[channel];
    }
  }
  return y;
}

}  // namespace vkformer::reference
