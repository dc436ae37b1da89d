#include "reference/mix_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> mix_rounds(const Array& x) {
  VKF_CHECK(check_array(x, "mix_rounds", "x"));
  if (x.rank() != 5 || x.dim(4) < 3) {
    return invalid_argument(message(
        {"[mix_rounds] x has shape ", shape_text(x.shape), "; it must be (B, H, R, S, Ev + 2)."}));
  }
  const int64_t heads = x.dim(1), rounds = x.dim(2), tokens = x.dim(3);
  const int64_t pitch = x.dim(4), width = pitch - 2;
  Array y = filled({x.dim(0), tokens, heads, width}, 0.0);
  for (int64_t row = 0; row < y.size() / width; ++row) {
    const int64_t unit = row / (heads * tokens) * heads + row % heads;
    const int64_t token = row / heads % tokens;
    const auto at = [&](int64_t r, int64_t column) {
      return x[((unit * rounds + r) * tokens + token) * pitch + column];
    };
    double highest = -std::numeric_limits<double>::max();
    for (int64_t r = 0; r < rounds; ++r) highest = std::max(highest, at(r, width));
    double total = 0;
    for (int64_t r = 0; r < rounds; ++r) {
      const double weight = at(r, width + 1) * std::exp(at(r, width) - highest);
      total += weight;
      for (int64_t e = 0; e < width; ++e) y[row * width + e] += weight * at(r, e);
    }
    for (int64_t e = 0; e < width && total != 0; ++e) y[row * width + e] /= total;
  }
  return y;
}

}  // namespace vkformer::reference
