#include "reference/head_linear.h"

#include "base/message.h"

namespace vkformer::reference {

Result<Array> head_linear(const Array& x, const Array& w, int64_t first, int64_t stride) {
  if (x.shape.size() != 2 || w.shape.size() != 3 || first < 0 || stride < 0 ||
      first + (w.dim(0) - 1) * stride + w.dim(1) > x.dim(1)) {
    return invalid_argument(message({"[head_linear] x has shape ", shape_text(x.shape), " and w ",
                                     shape_text(w.shape), ", which do not go together for heads ",
                                     stride, " columns apart from column ", first, " on."}));
  }
  const int64_t heads = w.dim(0), k = w.dim(1), n = w.dim(2);
  Array y = filled({x.dim(0), heads * n}, 0);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < k; ++i) {
        const double value = x[row * x.dim(1) + first + head * stride + i];
        for (int64_t j = 0; j < n; ++j) {
          y[(row * heads + head) * n + j] += value * w[(head * k + i) * n + j];
        }
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
