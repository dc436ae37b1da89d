#include "reference/select_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

constexpr double kSelectInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Result<Array> select_rows(const Array& x, int64_t k) {
  VKF_CHECK(check_array(x, "select_rows", "x"));
  if (x.rank() != 3 || k < 1 || k > x.dim(1)) {
    return invalid_argument(message({"[select_rows] x has shape ", shape_text(x.shape),
                                     " and k is ", k, "; x must be (B, S, C) and k 1 to S."}));
  }
  const int64_t rows = x.dim(1), width = x.dim(2);
  Array y = filled({x.dim(0), k}, 0.0);
  for (int64_t item = 0; item < x.dim(0); ++item) {
    // The best of each row, and whether it has a NaN, which comes before any number.
    std::vector<std::pair<bool, double>> best(static_cast<size_t>(rows), {false, -kSelectInfinity});
    for (int64_t i = 0; i < rows * width; ++i) {
      const double value = x[item * rows * width + i];
      auto& own = best[static_cast<size_t>(i / width)];
      if (std::isnan(value)) own = {true, 0.0};
      if (!own.first) own.second = std::max(own.second, value);
    }
    std::vector<int64_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return best[static_cast<size_t>(a)] > best[static_cast<size_t>(b)];
    });
    for (int64_t i = 0; i < k; ++i)
      y[item * k + i] = static_cast<double>(item * rows + order[static_cast<size_t>(i)]);
  }
  return y;
}

}  // namespace vkformer::reference
