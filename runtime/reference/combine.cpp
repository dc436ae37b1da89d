#include "reference/combine.h"

#include "base/check.h"

namespace vkformer::reference {

Result<Array> combine(const Array& a, double alpha, const Array& b, double beta) {
  VKF_CHECK(check_array(a, "combine", "a"));
  VKF_CHECK(check_shape(b, a.shape, "combine", "b"));
  Array y = a;
  for (int64_t i = 0; i < y.size(); ++i) y[i] = alpha * a[i] + beta * b[i];
  return y;
}

}  // namespace vkformer::reference
