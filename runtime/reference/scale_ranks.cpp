#include "reference/scale_ranks.h"

#include "base/check.h"

namespace vkformer::reference {

Result<Array> scale_ranks(const Array& x, const Array& scales, const Array& ranks,
                          const std::vector<int64_t>& sequences) {
  VKF_CHECK(check_array(x, "scale_ranks", "x"));
  const auto rows = static_cast<int64_t>(sequences.size());
  VKF_CHECK(check_shape(x, {rows, ranks.size()}, "scale_ranks", "x"));
  const int64_t adapters = scales.shape.back();
  Array y = x;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < ranks.size(); ++j) {
      const auto adapter = static_cast<int64_t>(ranks[j]);
      const int64_t at = sequences[static_cast<size_t>(row)] * adapters + adapter;
      if (adapter < 0 || adapter >= adapters || at < 0 || at >= scales.size()) {
        return invalid_argument("[scale_ranks] a rank or sequence has no scale");
      }
      const int64_t i = row * ranks.size() + j;
      y[i] = scales[at] == 0 ? 0.0 : scales[at] * x[i];
    }
  }
  return y;
}

}  // namespace vkformer::reference
