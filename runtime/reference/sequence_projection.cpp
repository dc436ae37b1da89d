#include "reference/sequence_projection.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> sequence_projection(const Array& x, const Array& matrix, const Array* mask) {
  VKF_CHECK(check_array(x, "sequence_projection", "x"));
  VKF_CHECK(check_array(matrix, "sequence_projection", "matrix"));
  const bool per_head = matrix.rank() == 3;
  if (x.rank() != 4 || (matrix.rank() != 2 && !(per_head && matrix.dim(0) == x.dim(1))) ||
      matrix.dim(-1) < x.dim(2)) {
    return invalid_argument(message(
        {"[sequence_projection] x ", shape_text(x.shape), " and matrix ", shape_text(matrix.shape),
         " must be (B, H, S, E) and (P, N) or (H, P, N) with N of at least S."}));
  }
  const int64_t heads = x.dim(1), keys = x.dim(2), width = x.dim(3);
  const int64_t projected = matrix.dim(-2), reach = matrix.dim(-1);
  if (mask) VKF_CHECK(check_shape(*mask, {x.dim(0), keys}, "sequence_projection", "mask"));
  Array y = filled({x.dim(0), heads, projected, width}, 0.0);
  for (int64_t unit = 0; unit < x.dim(0) * heads; ++unit) {
    const int64_t from = per_head ? unit % heads * projected : 0;
    for (int64_t s = 0; s < keys; ++s) {
      if (mask && (*mask)[unit / heads * keys + s] == 0) continue;
      for (int64_t p = 0; p < projected; ++p) {
        const double weight = matrix[(from + p) * reach + s];
        for (int64_t e = 0; e < width; ++e) {
          y[(unit * projected + p) * width + e] += weight * x[(unit * keys + s) * width + e];
        }
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
