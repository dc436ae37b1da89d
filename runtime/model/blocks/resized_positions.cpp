#include "model/blocks/resized_positions.h"

#include <algorithm>
#include <cmath>

namespace vkformer {
namespace {

// What one place of the new grid takes of the old one, along one side.
struct Tap {
  int64_t from = 0;
  double weight = 0.0;
};
using Taps = std::vector<Tap>;

double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

// Places beyond the sides are those at the sides.
Taps nearest_four(int64_t from, int64_t to, int64_t place) {
  const double at =
      (static_cast<double>(place) + 0.5) * static_cast<double>(from) / static_cast<double>(to) -
      0.5;
  const double first = std::floor(at);
  Taps taps;
  for (int64_t i = -1; i <= 2; ++i) {
    const int64_t source = std::clamp<int64_t>(static_cast<int64_t>(first) + i, 0, from - 1);
    taps.push_back({source, cubic(at - first - static_cast<double>(i), -0.75)});
  }
  return taps;
}

// Places before the first are the first.
Taps nearest_two(int64_t from, int64_t to, int64_t place) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double at = std::max(0.0, (static_cast<double>(place) + 0.5) * scale - 0.5);
  const auto first = static_cast<int64_t>(at);
  const double part = at - static_cast<double>(first);
  return {{first, 1.0 - part}, {std::min(first + 1, from - 1), part}};
}

double triangle(double x) {
  return std::max(1.0 - std::abs(x), 0.0);
}

double sharp_cubic(double x) {
  return cubic(x, -0.5);
}

// Places beyond the sides are omitted. A filter reaches `reach` places to each side.
Taps widened(int64_t from, int64_t to, int64_t place, double (*filter)(double), double reach) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double spread = std::max(scale, 1.0);
  const double center = scale * (static_cast<double>(place) + 0.5);
  const auto first = std::max<int64_t>(0, static_cast<int64_t>(center - reach * spread + 0.5));
  const auto end = std::min<int64_t>(from, static_cast<int64_t>(center + reach * spread + 0.5));
  Taps taps;
  double sum = 0.0;
  for (int64_t i = first; i < end; ++i) {
    const double weight = filter((static_cast<double>(i) - center + 0.5) / spread);
    taps.push_back({i, weight});
    sum += weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

Taps taps_at(int64_t from, int64_t to, int64_t place, PositionFilter filter) {
  switch (filter) {
    case PositionFilter::kBilinear:
      return nearest_two(from, to, place);
    case PositionFilter::kBicubic:
      return nearest_four(from, to, place);
    case PositionFilter::kBilinearAntialias:
      return widened(from, to, place, triangle, 1.0);
    case PositionFilter::kBicubicAntialias:
      break;
  }
  return widened(from, to, place, sharp_cubic, 2.0);
}

std::vector<Taps> taps_of(int64_t from, int64_t to, PositionFilter filter) {
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) all.push_back(taps_at(from, to, i, filter));
  return all;
}

}  // namespace

std::vector<float> resized_positions(std::span<const float> values, const GridSize& from,
                                     const GridSize& to, int64_t width, PositionFilter filter) {
  const std::vector<Taps> rows = taps_of(from.height, to.height, filter);
  const std::vector<Taps> columns = taps_of(from.width, to.width, filter);
  std::vector<float> result;
  result.reserve(static_cast<size_t>(to.count() * width));
  for (const Taps& down : rows) {
    for (const Taps& across : columns) {
      for (int64_t d = 0; d < width; ++d) {
        double sum = 0.0;
        for (const Tap& y : down) {
          for (const Tap& x : across) {
            const int64_t at = (y.from * from.width + x.from) * width + d;
            sum += y.weight * x.weight * values[static_cast<size_t>(at)];
          }
        }
        result.push_back(static_cast<float>(sum));
      }
    }
  }
  return result;
}

}  // namespace vkformer
