#include "reference/rotary.h"

#include <limits>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

Status check(const Array& x, const Array& table, const Array& positions,
             const RotaryOptions& options) {
  VKF_CHECK(check_array(x, "rotary", "x"));
  VKF_CHECK(check_array(table, "rotary", "table"));
  VKF_CHECK(check_array(positions, "rotary", "positions"));
  if (table.rank() != 2 || table.dim(1) % 2 != 0 || table.dim(1) > options.head_width) {
    return invalid_argument(message({"[rotary] The table has shape ", shape_text(table.shape),
                                     "; it must have two axes, the last one even and at most ",
                                     options.head_width, "."}));
  }
  if (x.rank() < 1 || options.heads * options.head_width > x.dim(-1) ||
      positions.size() * x.dim(-1) != x.size()) {
    return invalid_argument(
        message({"[rotary] x has shape ", shape_text(x.shape), "; its last axis must hold ",
                 options.heads, " heads of width ", options.head_width, " and it must have ",
                 positions.size(), " rows."}));
  }
  return {};
}

}  // namespace

Result<Array> rotary(const Array& x, const Array& table, const Array& positions,
                     const RotaryOptions& options) {
  VKF_CHECK(check(x, table, positions, options));
  Array y = x;
  const int64_t width = x.dim(-1);
  const int64_t half = table.dim(1) / 2;
  const bool interleaved = options.pairing == RotaryPairing::kInterleaved;
  for (int64_t row = 0; row < positions.size(); ++row) {
    const double position = positions[row];
    const bool exists = position >= 0 && position < static_cast<double>(table.dim(0));
    const int64_t angles = exists ? static_cast<int64_t>(position) * 2 * half : 0;
    for (int64_t head = 0; head < options.heads; ++head) {
      const int64_t first = row * width + head * options.head_width;
      for (int64_t i = 0; i < half; ++i) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double cosine = exists ? table[angles + i] : nan;
        const double sine = exists ? table[angles + half + i] : nan;
        const int64_t at_u = first + (interleaved ? 2 * i : i);
        const int64_t at_v = first + (interleaved ? 2 * i + 1 : i + half);
        y[at_u] = x[at_u] * cosine - x[at_v] * sine;
        y[at_v] = x[at_v] * cosine + x[at_u] * sine;
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
