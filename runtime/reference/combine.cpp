#include "reference/combine.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace vkformer::reference {

Result<Array> combine(const Array& a, double alpha, const Array& b, double beta, double most) {
  VKF_CHECK(check_array(a, "combine", "a"));
  VKF_CHECK(check_shape(b, a.shape, "combine", "b"));
  Array y = a;
  for (int64_t i = 0; i < y.size(); ++i) {
    const double second = std::isnan(b[i]) ? b[i] : std::clamp(b[i], -most, most);
    y[i] = alpha * a[i] + beta * second;
  }
  return y;
}

}  // namespace vkformer::reference
