#include "reference/lsh_hash.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// One vector under one rotation.
struct Vector {
  const Array& x;
  const Array& rotations;
  int64_t x_row;   // of (B, H, S)
  int64_t head;    // h
  int64_t rotate;  // r
};

double rotated(const Vector& v, int64_t column) {
  const int64_t width = v.x.dim(3);
  double sum = 0;
  for (int64_t e = 0; e < width; ++e) {
    const int64_t row = (v.head * width + e) * v.rotations.dim(2) + v.rotate;
    sum += v.x[v.x_row * width + e] * v.rotations[row * v.rotations.dim(3) + column];
  }
  return sum;
}

// argmax over `factor` values; a NaN counts as the largest.
int64_t bucket_of(const Vector& v, int64_t first, int64_t factor) {
  double most = 0;
  int64_t at = -1;
  for (int64_t i = 0; i < factor; ++i) {
    const int64_t half = factor / 2;
    const double value = i < half ? rotated(v, first + i) : -rotated(v, first + i - half);
    const bool wins = std::isnan(value) ? !std::isnan(most) : value > most;
    if (at >= 0 && !wins) continue;
    most = value;
    at = i;
  }
  return at;
}

}  // namespace

Result<Array> lsh_hash(const Array& x, const Array& rotations, const LshHashOptions& options) {
  VKF_CHECK(check_array(x, "lsh_hash", "x"));
  VKF_CHECK(check_array(rotations, "lsh_hash", "rotations"));
  if (x.rank() != 4 || rotations.rank() != 4) {
    return invalid_argument(message({"[lsh_hash] x ", shape_text(x.shape), " and rotations ",
                                     shape_text(rotations.shape), " must both have four axes."}));
  }
  const int64_t heads = x.dim(1);
  const int64_t tokens = x.dim(2);
  const int64_t rounds = rotations.dim(2);
  int64_t buckets = options.mask ? 1 : 0;
  int64_t product = 1;
  for (int64_t factor : options.factors) product *= factor;
  buckets += product;
  Array y = filled({x.dim(0), heads, rounds, tokens}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t t = i % tokens;
    const int64_t r = i / tokens % rounds;
    const int64_t unit = i / (tokens * rounds);
    const Vector v{x, rotations, unit * tokens + t, unit % heads, r};
    int64_t bucket = 0;
    int64_t first = 0;
    int64_t weight = 1;
    for (int64_t factor : options.factors) {
      bucket += weight * bucket_of(v, first, factor);
      first += factor / 2;
      weight *= factor;
    }
    if (options.mask && (*options.mask)[unit / heads * tokens + t] == 0.0) bucket = product;
    y[i] = static_cast<double>(bucket + (options.offsets ? r * buckets : 0));
  }
  return y;
}

}  // namespace vkformer::reference
