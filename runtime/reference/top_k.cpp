#include "reference/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// Does a come before b? A strict weak order even with NaN.
bool is_better(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

}  // namespace

std::vector<int64_t> top_k_row(std::span<const double> row, int64_t k) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  // Stable, so that equal values keep their ascending indices.
  std::stable_sort(order.begin(), order.end(), [row](int64_t a, int64_t b) {
    return is_better(row[static_cast<size_t>(a)], row[static_cast<size_t>(b)]);
  });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(k, 0))));
  return order;
}

Result<TopK> top_k(const Array& x, int64_t k) {
  VKF_CHECK(check_array(x, "top_k", "x"));
  if (x.rank() < 1 || k < 1 || k > x.dim(-1)) {
    return invalid_argument(
        message({"[top_k] k is ", k, " and x has shape ", shape_text(x.shape),
                 "; k must be at least 1 and at most the size of the last axis."}));
  }
  const int64_t width = x.dim(-1);
  Shape shape = x.shape;
  shape.back() = k;
  TopK best{filled(shape, 0.0), filled(shape, 0.0)};
  for (int64_t row = 0; row < x.size() / width; ++row) {
    const auto values =
        std::span(x.data).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
    int64_t out = row * k;
    for (int64_t index : top_k_row(values, k)) {
      best.values[out] = x[row * width + index];
      best.indices[out] = static_cast<double>(index);
      ++out;
    }
  }
  return best;
}

}  // namespace vkformer::reference
