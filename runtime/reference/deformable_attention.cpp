#include "reference/deformable_attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// A grid within the tokens of a picture.
struct DeformableGrid {
  int64_t first = 0;  // token
  int64_t height = 0;
  int64_t width = 0;
};

// Column c of picture `item` at (x, y), in tokens of the grid; 0 outside.
double deformable_sample(const Array& value, int64_t item, const DeformableGrid& grid, double x,
                         double y, int64_t c) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (!(x > -1 && y > -1 && x < static_cast<double>(grid.width) &&
        y < static_cast<double>(grid.height))) {
    return 0.0;
  }
  const auto left = static_cast<int64_t>(std::floor(x)), top = static_cast<int64_t>(std::floor(y));
  double sum = 0.0;
  for (int64_t row = std::max<int64_t>(top, 0); row <= std::min(top + 1, grid.height - 1); ++row) {
    for (int64_t column = std::max<int64_t>(left, 0); column <= std::min(left + 1, grid.width - 1);
         ++column) {
      const double share = (1.0 - std::abs(x - static_cast<double>(column))) *
                           (1.0 - std::abs(y - static_cast<double>(row)));
      const int64_t token = item * value.dim(1) + grid.first + row * grid.width + column;
      sum += share * value[token * value.dim(2) + c];
    }
  }
  return sum;
}

std::vector<double> softmax_scores(const Array& samples, int64_t first, int64_t count) {
  std::vector<double> weights(static_cast<size_t>(count));
  double highest = samples[first], total = 0.0;
  for (int64_t i = 0; i < count; ++i) highest = std::max(highest, samples[first + i]);
  for (int64_t i = 0; i < count; ++i) {
    weights[static_cast<size_t>(i)] = std::exp(samples[first + i] - highest);
    total += weights[static_cast<size_t>(i)];
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

}  // namespace

Result<Array> deformable_attention(const Array& value, const Array& samples, const Array& boxes,
                                   const DeformableOptions& o) {
  VKF_CHECK(check_array(value, "deformable_attention", "value"));
  VKF_CHECK(check_array(samples, "deformable_attention", "samples"));
  const auto levels = static_cast<int64_t>(o.levels.size());
  std::vector<DeformableGrid> grids;
  int64_t tokens = 0;
  for (const auto& [height, width] : o.levels) {
    grids.push_back({tokens, height, width});
    tokens += height * width;
  }
  if (value.rank() != 3 || samples.rank() != 3 || value.dim(1) != tokens ||
      value.dim(2) % o.heads != 0 || samples.dim(2) != 3 * o.heads * levels * o.points) {
    return invalid_argument(
        message({"[deformable_attention] value has shape ", shape_text(value.shape),
                 " and samples ", shape_text(samples.shape), ", which do not fit ", tokens,
                 " tokens and ", o.heads, " heads."}));
  }
  const int64_t queries = samples.dim(1), width = value.dim(2);
  VKF_CHECK(check_shape(boxes, {value.dim(0), queries, 4}, "deformable_attention", "boxes"));
  const int64_t count = levels * o.points, all = o.heads * count;
  Array y = filled({value.dim(0), queries, width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t c = i % width, row = i / width;
    const int64_t head = c / (width / o.heads);
    const std::vector<double> weights =
        softmax_scores(samples, row * 3 * all + 2 * all + head * count, count);
    for (int64_t s = 0; s < count; ++s) {
      const DeformableGrid& grid = grids[static_cast<size_t>(s / o.points)];
      const int64_t offset = row * 3 * all + 2 * (head * count + s);
      const auto place = [&](int64_t axis, int64_t size) {
        const double part = boxes[4 * row + axis] + samples[offset + axis] /
                                                        static_cast<double>(o.points) *
                                                        boxes[4 * row + 2 + axis] * 0.5;
        return part * static_cast<double>(size) - 0.5;
      };
      y[i] += weights[static_cast<size_t>(s)] * deformable_sample(value, row / queries, grid,
                                                                  place(0, grid.width),
                                                                  place(1, grid.height), c);
    }
  }
  return y;
}

}  // namespace vkformer::reference
