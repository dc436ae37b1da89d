#include "reference/gated_norm.h"

#include <cmath>

#include "base/check.h"
#include "reference/activation.h"

namespace vkformer::reference {

Result<Array> gated_norm(const Array& x, const Array& z, const Array& gain,
                         const GatedNormOptions& options) {
  using Order = GatedNormOptions::Order;
  VKF_CHECK(check_array(x, "gated_norm", "x"));
  VKF_CHECK(check_array(z, "gated_norm", "z"));
  VKF_CHECK(check_array(gain, "gated_norm", "gain"));
  if (x.rank() != 2 || z.rank() != 2 || gain.rank() != 2 || x.dim(0) != z.dim(0) ||
      gain.size() != x.dim(1) || options.first + x.dim(1) > z.dim(1)) {
    return invalid_argument(
        "[gated_norm] x must be (R, G E), z (R, first + G E or more) and gain (G, E); give arrays "
        "of these shapes.");
  }
  const int64_t width = gain.dim(1);
  Array gates = filled(x.shape, 0.0);
  for (int64_t i = 0; i < gates.size(); ++i) {
    gates[i] = z[i / x.dim(1) * z.dim(1) + options.first + i % x.dim(1)];
  }
  VKF_ASSIGN(gates, activation(gates, options.activation));
  Array y = x;
  for (int64_t at = 0; at < y.size(); at += width) {
    if (options.order != Order::kNormFirst) {
      for (int64_t i = at; i < at + width; ++i) y[i] *= gates[i];
    }
    if (options.order == Order::kGateOnly) continue;
    double squares = 0.0;
    for (int64_t i = at; i < at + width; ++i) squares += y[i] * y[i];
    const double root = std::sqrt(squares / static_cast<double>(width) + options.epsilon);
    for (int64_t i = at; i < at + width; ++i) {
      y[i] *= gain[i % x.dim(1)] / root;
      if (options.order == Order::kNormFirst) y[i] *= gates[i];
    }
  }
  return y;
}

}  // namespace vkformer::reference
