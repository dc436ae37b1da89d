#include "reference/resize_grid.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// A source and the part that is taken of the one after it.
struct GridPlace {
  int64_t first = 0;
  int64_t second = 0;
  double part = 0.0;
};

GridPlace grid_place(int64_t at, int64_t from, int64_t to, const GridOptions& o) {
  double source = 0.0;
  if (o.halves) {
    source = 2.0 * static_cast<double>(at) + 0.5;
  } else if (!o.aligned) {
    source = std::max(
        0.0, (static_cast<double>(at) + 0.5) * static_cast<double>(from) / static_cast<double>(to) -
                 0.5);
  } else if (to > 1) {
    source = static_cast<double>(at) * static_cast<double>(from - 1) / static_cast<double>(to - 1);
  }
  const int64_t first = std::min(static_cast<int64_t>(source), from - 1);
  return {first, std::min(first + 1, from - 1), source - static_cast<double>(first)};
}

}  // namespace

Result<Array> resize_grid(const Array& x, const GridOptions& o) {
  VKF_CHECK(check_array(x, "resize_grid", "x"));
  if (x.rank() != 3 || x.dim(1) != o.height * o.width) {
    return invalid_argument(message({"[resize_grid] x has shape ", shape_text(x.shape),
                                     "; it must be (B, ", o.height * o.width, ", C)."}));
  }
  const int64_t channels = x.dim(2);
  Array y = filled({x.dim(0), o.out_height * o.out_width, channels}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t c = i % channels;
    const int64_t token = i / channels % (o.out_height * o.out_width);
    const int64_t batch = i / (channels * o.out_height * o.out_width);
    const GridPlace row = grid_place(token / o.out_width, o.height, o.out_height, o);
    const GridPlace column = grid_place(token % o.out_width, o.width, o.out_width, o);
    const auto line = [&](int64_t at) {
      const int64_t first = (batch * o.height + at) * o.width;
      return (1.0 - column.part) * x[(first + column.first) * channels + c] +
             column.part * x[(first + column.second) * channels + c];
    };
    y[i] = (1.0 - row.part) * line(row.first) + row.part * line(row.second);
  }
  return y;
}

}  // namespace vkformer::reference
