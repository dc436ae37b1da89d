#include "reference/segment_means.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> segment_means(const Array& x, int64_t segments) {
  VKF_CHECK(check_array(x, "segment_means", "x"));
  if (x.rank() != 4 || segments < 1 || x.dim(2) % segments != 0) {
    return invalid_argument(
        message({"[segment_means] x has shape ", shape_text(x.shape),
                 "; it must be (B, H, S, E) with S a multiple of ", segments, "."}));
  }
  const int64_t width = x.dim(3);
  const int64_t length = x.dim(2) / segments;
  Array y = filled({x.dim(0), x.dim(1), segments, width}, 0.0);
  for (int64_t row = 0; row < y.size() / width; ++row) {
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t e = 0; e < width; ++e) {
        y[row * width + e] += x[(row * length + t) * width + e] / static_cast<double>(length);
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
