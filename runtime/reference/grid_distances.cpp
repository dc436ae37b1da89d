#include "reference/grid_distances.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> grid_distances(const Array& qkv, const Array& table, const GridDistanceOptions& o) {
  VKF_CHECK(check_array(qkv, "grid_distances", "qkv"));
  VKF_CHECK(check_array(table, "grid_distances", "table"));
  const int64_t tokens = o.height * o.width;
  const int64_t e = table.rank() == 2 ? table.dim(1) : 0;
  if (e == 0 || qkv.rank() != 3 || qkv.dim(1) != tokens || qkv.dim(2) != 3 * o.heads * e ||
      table.dim(0) != 2 * o.height + 2 * o.width - 2) {
    return invalid_argument(
        message({"[grid_distances] qkv has shape ", shape_text(qkv.shape), " and the table ",
                 shape_text(table.shape), ", which do not fit ", o.heads, " heads and a grid of ",
                 o.height, "x", o.width, "."}));
  }
  const int64_t wide = e + o.height + o.width;
  const int64_t columns = o.heads * (2 * wide + e);
  Array y = filled({qkv.dim(0), tokens, columns}, 0.0);
  for (int64_t row = 0; row < qkv.dim(0) * tokens; ++row) {
    const int64_t own_row = row % tokens / o.width, own_column = row % o.width;
    const int64_t from = row * 3 * o.heads * e;
    for (int64_t h = 0; h < o.heads; ++h) {
      const int64_t q = row * columns + h * wide;
      const int64_t k = q + o.heads * wide;
      const int64_t v = row * columns + 2 * o.heads * wide + h * e;
      for (int64_t i = 0; i < e; ++i) {
        y[q + i] = o.scale * qkv[from + h * e + i];
        y[k + i] = qkv[from + (o.heads + h) * e + i];
        y[v + i] = qkv[from + (2 * o.heads + h) * e + i];
        for (int64_t r = 0; r < o.height; ++r) {
          y[q + e + r] += qkv[from + h * e + i] * table[(own_row - r + o.height - 1) * e + i];
        }
        for (int64_t c = 0; c < o.width; ++c) {
          const int64_t distance = 2 * o.height - 1 + own_column - c + o.width - 1;
          y[q + e + o.height + c] += qkv[from + h * e + i] * table[distance * e + i];
        }
      }
      y[k + e + own_row] = 1.0;
      y[k + e + o.height + own_column] = 1.0;
    }
  }
  return y;
}

}  // namespace vkformer::reference
