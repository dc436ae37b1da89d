#include "reference/sinusoidal_positions.h"

#include <cmath>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 30;

}  // namespace

Result<Array> sinusoidal_positions(const SinusoidalPositionsOptions& options) {
  const int64_t width = options.width;
  if (options.length < 0 || width < 1 || options.length > kMaxElements / width) {
    return invalid_argument(message(
        {"[sinusoidal_positions] The table is to have ", options.length, " rows of width ", width,
         "; the width must be above 0, the length not negative, and both "
         "together at most 2^30 elements."}));
  }
  const bool transformer = options.spacing == SinusoidSpacing::kTransformer;
  const bool halves = options.layout == SinusoidLayout::kHalves;
  const int64_t cosines = width / 2;
  const int64_t sines = transformer ? width - cosines : cosines;
  const double span = static_cast<double>(cosines > 1 ? cosines - 1 : 1);
  const double denominator = transformer ? static_cast<double>(width) / 2.0 : span;
  Array table = filled({options.length, width}, 0.0);
  for (int64_t p = 0; p < options.length; ++p) {
    for (int64_t i = 0; i < sines; ++i) {
      const double position = static_cast<double>(p) + static_cast<double>(options.offset);
      const double angle = position * std::pow(10000.0, -static_cast<double>(i) / denominator);
      table[p * width + (halves ? i : 2 * i)] = std::sin(angle);
      if (i < cosines) table[p * width + (halves ? sines + i : 2 * i + 1)] = std::cos(angle);
    }
  }
  return table;
}

}  // namespace vkformer::reference
