#include "reference/lsh_sort.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {

Result<Array> lsh_sort(const Array& buckets) {
  VKF_CHECK(check_array(buckets, "lsh_sort", "buckets"));
  if (buckets.rank() != 4) {
    return invalid_argument(message({"[lsh_sort] buckets has shape ", shape_text(buckets.shape),
                                     "; it must be (B, H, R, S)."}));
  }
  const int64_t tokens = buckets.dim(3);
  Array y = buckets;
  std::vector<int64_t> positions(static_cast<size_t>(tokens));
  for (int64_t base = 0; base < y.size(); base += tokens) {
    std::iota(positions.begin(), positions.end(), 0);
    std::stable_sort(positions.begin(), positions.end(),
                     [&](int64_t a, int64_t b) { return buckets[base + a] < buckets[base + b]; });
    for (int64_t i = 0; i < tokens; ++i) {
      y[base + i] = static_cast<double>(positions[static_cast<size_t>(i)]);
    }
  }
  return y;
}

}  // namespace vkformer::reference
