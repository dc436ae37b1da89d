#include "ops/sinusoidal_positions.h"
#include "base/message.h"

#include <cmath>

namespace vkformer {

Result<std::vector<float>> sinusoidal_positions(const SinusoidalAttrs& attrs) {
  constexpr int64_t kMostElements = int64_t{1} << 25;
  const bool sane = attrs.length >= 0 && attrs.width >= 0 &&
                    (attrs.width == 0 || attrs.length <= kMostElements / attrs.width);
  if (!sane) {
    return invalid_argument(message(
        {"[sinusoidal_positions] The table has ", attrs.length, " rows of width ", attrs.width,
         ", but neither may be negative and their product at most 33554432."}));
  }
  const bool halves = attrs.layout == SinusoidalLayout::kHalves;
  const bool fairseq = attrs.spacing == SinusoidalSpacing::kHalfMinusOne;
  const int64_t cosines = attrs.width / 2;
  const int64_t sines = fairseq ? cosines : attrs.width - cosines;
  // The one frequency of D = 2 is 1 in every spacing.
  const double span =
      fairseq ? static_cast<double>(cosines - 1) : static_cast<double>(attrs.width) / 2.0;
  const double den = span > 0.0 ? span : 1.0;
  std::vector<float> table(static_cast<size_t>(attrs.length * attrs.width), 0.0f);
  for (int64_t i = 0; i < sines; ++i) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / den);
    const int64_t sine_column = halves ? i : 2 * i;
    const int64_t cosine_column = halves ? sines + i : 2 * i + 1;
    for (int64_t p = 0; p < attrs.length; ++p) {
      const double angle = (static_cast<double>(p) + static_cast<double>(attrs.offset)) * frequency;
      table[static_cast<size_t>(p * attrs.width + sine_column)] =
          static_cast<float>(std::sin(angle));
      if (i >= cosines) continue;  // an odd D has one sine more than cosines
      table[static_cast<size_t>(p * attrs.width + cosine_column)] =
          static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

}  // namespace vkformer
