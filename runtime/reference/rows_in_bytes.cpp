#include "reference/rows_in_bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vkformer::reference {
namespace {

constexpr int64_t kBlock = 32;
constexpr double kLargest = 127;

// Calls f(first, count, peak) for every block; the peak is not finite where an element is not.
template <class F>
void for_blocks(const Array& x, F&& f) {
  const int64_t width = x.dim(-1);
  for (int64_t row = 0; row < x.size(); row += width) {
    for (int64_t k = 0; k < width; k += kBlock) {
      const int64_t count = std::min(kBlock, width - k);
      double peak = 0;
      for (int64_t i = 0; i < count; ++i) {
        const double size = std::fabs(x[row + k + i]);
        if (!(size <= peak)) peak = size;
        if (std::isnan(size)) break;
      }
      f(row + k, count, peak);
    }
  }
}

}  // namespace

Array rows_in_bytes(const Array& x) {
  Array y = x;
  for_blocks(x, [&](int64_t first, int64_t count, double peak) {
    const double scale = peak / kLargest;
    for (int64_t i = first; i < first + count; ++i) {
      if (!std::isfinite(peak)) {
        y[i] = std::numeric_limits<double>::quiet_NaN();
      } else {
        y[i] = peak < std::ldexp(1.0, -119) ? 0 : scale * std::nearbyint(x[i] / scale);
      }
    }
  });
  return y;
}

Array clear_of_ties(Array x) {
  Array y = x;
  for_blocks(x, [&](int64_t first, int64_t count, double peak) {
    if (!std::isfinite(peak) || peak < std::ldexp(1.0, -119)) return;
    const double scale = peak / kLargest;
    for (int64_t i = first; i < first + count; ++i) {
      const double steps = x[i] / scale;
      if (std::fabs(steps - std::floor(steps) - 0.5) < 0.01) y[i] = scale * std::nearbyint(steps);
    }
  });
  return round_to_f32(std::move(y));
}

}  // namespace vkformer::reference
