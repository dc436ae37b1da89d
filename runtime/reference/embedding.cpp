#include "reference/embedding.h"

#include <cmath>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// `id` as a row number of `table`.
Result<int64_t> row_of(double id, const Array& table, std::string_view role) {
  const int64_t rows = table.dim(0);
  if (id >= 0.0 && id < static_cast<double>(rows) && id == std::floor(id)) {
    return static_cast<int64_t>(id);
  }
  return invalid_argument(
      message({"[embedding] The ", role, " ", id, " is not a row of its table; rows go from 0 to ",
               rows - 1, "."}));
}

Status check_tables(const Array& table, const Array& ids, const EmbeddingOptions& options) {
  VKF_CHECK(check_array(table, "embedding", "table"));
  VKF_CHECK(check_array(ids, "embedding", "ids"));
  if (table.rank() != 2) {
    return invalid_argument(message({"[embedding] The table has shape ", shape_text(table.shape),
                                     "; it must have two axes: row, width."}));
  }
  if (options.row_scales) {
    VKF_CHECK(check_shape(*options.row_scales, ids.shape, "embedding", "row_scales"));
  }
  if (!options.position_table) return {};
  VKF_CHECK(check_array(*options.position_table, "embedding", "position_table"));
  if (options.position_table->rank() != 2 || options.position_table->dim(1) != table.dim(1)) {
    return invalid_argument(message(
        {"[embedding] The position table has shape ", shape_text(options.position_table->shape),
         "; it must have two axes and the width of the table, ", table.dim(1), "."}));
  }
  if (options.position_ids) {
    VKF_CHECK(check_shape(*options.position_ids, ids.shape, "embedding", "position_ids"));
  }
  return {};
}

}  // namespace

Result<Array> embedding(const Array& table, const Array& ids, const EmbeddingOptions& options) {
  VKF_CHECK(check_tables(table, ids, options));
  const int64_t width = table.dim(1);
  const int64_t tokens = ids.rank() == 0 ? 1 : ids.dim(-1);
  Shape shape = ids.shape;
  shape.push_back(width);
  Array y = filled(shape, 0.0);
  for (int64_t at = 0; at < ids.size(); ++at) {
    VKF_ASSIGN(const int64_t row, row_of(ids[at], table, "id"));
    const double scale = options.scale * (options.row_scales ? (*options.row_scales)[at] : 1.0);
    for (int64_t d = 0; d < width; ++d) y[at * width + d] = table[row * width + d] * scale;
    if (!options.position_table) continue;
    const double index =
        static_cast<double>(at % tokens) + static_cast<double>(options.position_offset);
    const double position = options.position_ids ? (*options.position_ids)[at] : index;
    VKF_ASSIGN(const int64_t place, row_of(position, *options.position_table, "position"));
    for (int64_t d = 0; d < width; ++d) {
      y[at * width + d] += (*options.position_table)[place * width + d];
    }
  }
  return y;
}

}  // namespace vkformer::reference
