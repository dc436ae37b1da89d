#include "reference/concat_columns.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> concat_columns(const Array& a, const Array& b) {
  VKF_CHECK(check_array(a, "concat_columns", "a"));
  VKF_CHECK(check_array(b, "concat_columns", "b"));
  const bool fit = a.rank() >= 1 && a.rank() == b.rank() &&
                   std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin());
  if (!fit) {
    return invalid_argument(
        message({"[concat_columns] a has shape ", shape_text(a.shape), " and b ",
                 shape_text(b.shape), "; they may differ in their last axis only."}));
  }
  Array y;
  y.shape = a.shape;
  y.shape.back() += b.dim(-1);
  const int64_t rows = y.dim(-1) == 0 ? 0 : element_count(y.shape) / y.dim(-1);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < a.dim(-1); ++i) y.data.push_back(a[row * a.dim(-1) + i]);
    for (int64_t i = 0; i < b.dim(-1); ++i) y.data.push_back(b[row * b.dim(-1) + i]);
  }
  return y;
}

}  // namespace vkformer::reference
