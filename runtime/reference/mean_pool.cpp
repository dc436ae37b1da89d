#include "reference/mean_pool.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// The first NaN stays.
double larger(double a, double b) {
  if (std::isnan(a)) return a;
  return std::isnan(b) || b > a ? b : a;
}

}  // namespace

Result<Array> mean_pool(const Array& x, const MeanPoolOptions& options) {
  VKF_CHECK(check_array(x, "mean_pool", "x"));
  if (x.rank() != 3) {
    return invalid_argument(message({"[mean_pool] x has shape ", shape_text(x.shape),
                                     "; it must have three axes: batch, token, width."}));
  }
  const int64_t tokens = x.dim(1);
  const int64_t width = x.dim(2);
  if (options.mask) {
    VKF_CHECK(check_shape(*options.mask, {x.dim(0), tokens}, "mean_pool", "mask"));
  }
  Array y = filled({x.dim(0), width}, 0.0);
  for (int64_t batch = 0; batch < x.dim(0); ++batch) {
    double count = 0.0;
    double weights = 0.0;
    for (int64_t s = 0; s < tokens; ++s) {
      if (options.mask && (*options.mask)[batch * tokens + s] == 0.0) continue;
      const double weight = options.pool == Pool::kWeightedMean ? static_cast<double>(s + 1) : 1.0;
      for (int64_t d = 0; d < width; ++d) {
        const double value = x[(batch * tokens + s) * width + d];
        double& pooled = y[batch * width + d];
        if (options.pool == Pool::kMax) {
          pooled = count == 0.0 ? value : larger(pooled, value);
        } else if (options.pool == Pool::kLast) {
          pooled = value;
        } else {
          pooled += weight * value;
        }
      }
      count += 1.0;
      weights += weight;
    }
    double divided_by = std::max(weights, 1e-9);
    if (options.pool == Pool::kMeanSqrtLength) divided_by = std::sqrt(divided_by);
    if (options.pool == Pool::kMax || options.pool == Pool::kLast) divided_by = 1.0;
    double squares = 0.0;
    for (int64_t d = 0; d < width; ++d) {
      double& value = y[batch * width + d];
      value /= divided_by;
      squares += value * value;
    }
    if (!options.normalize) continue;
    const double length = std::sqrt(squares);
    // Written so that a NaN length is not replaced by the floor.
    const double divisor = length < 1e-12 ? 1e-12 : length;
    for (int64_t d = 0; d < width; ++d) y[batch * width + d] /= divisor;
  }
  return y;
}

}  // namespace vkformer::reference
