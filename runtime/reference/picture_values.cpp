#include "reference/picture_values.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// Of a sum of weighted bytes, which doubles hold exactly.
double to_byte(double sum) {
  return std::clamp(std::floor((sum + 2097152.0) / 4194304.0), 0.0, 255.0);
}

}  // namespace

Result<Array> picture_values(const PictureValuesInputs& inputs) {
  const auto& [bytes, columns, rows, values] = inputs;
  VKF_CHECK(check_array(bytes, "picture_values", "bytes"));
  VKF_CHECK(check_shape(values, {3, 256}, "picture_values", "values"));
  if (bytes.rank() != 3 || columns.rank() != 2 || rows.rank() != 2) {
    return invalid_argument(
        message({"[picture_values] bytes has shape ", shape_text(bytes.shape),
                 "; it must be (H, W, 3), and both weights must be matrices."}));
  }
  const int64_t from_height = bytes.dim(0), from_width = bytes.dim(1);
  const int64_t width = columns.dim(0), height = rows.dim(0);
  VKF_CHECK(check_shape(columns, {width, from_width}, "picture_values", "columns"));
  VKF_CHECK(check_shape(rows, {height, from_height}, "picture_values", "rows"));
  Array between = filled({from_height, width, 3}, 0.0);
  for (int64_t i = 0; i < between.size(); ++i) {
    const int64_t line = i / (3 * width), x = i / 3 % width, channel = i % 3;
    double sum = 0;
    for (int64_t s = 0; s < from_width; ++s) {
      sum += columns[x * from_width + s] * bytes[(line * from_width + s) * 3 + channel];
    }
    between[i] = to_byte(sum);
  }
  Array y = filled({3, height, width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t channel = i / (height * width), line = i / width % height, x = i % width;
    double sum = 0;
    for (int64_t s = 0; s < from_height; ++s) {
      sum += rows[line * from_height + s] * between[(s * width + x) * 3 + channel];
    }
    y[i] = values[channel * 256 + static_cast<int64_t>(to_byte(sum))];
  }
  return y;
}

}  // namespace vkformer::reference
