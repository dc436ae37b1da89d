#include "ops/relative_positions.h"
#include "base/message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace vkformer {
namespace {

struct Ratio {
  int64_t top;
  int64_t bottom;
};

Ratio reduced(int64_t top, int64_t bottom) {
  const int64_t divisor = std::gcd(top, bottom);
  return {top / divisor, bottom / divisor};
}

// Is base^exponent = value? Precondition: base, value >= 1.
bool is_power(int64_t base, int64_t exponent, int64_t value) {
  if (base == 1) return value == 1;
  int64_t rest = value;
  for (int64_t i = 0; i < exponent; ++i) {
    if (rest % base != 0) return false;
    rest /= base;
  }
  return rest == 1;
}

// Is a = z^i and c = z^k for some whole z? Precondition: a, c, i, k >= 1.
bool share_root(int64_t a, int64_t i, int64_t c, int64_t k) {
  const double root = std::pow(static_cast<double>(a), 1.0 / static_cast<double>(i));
  const auto near = static_cast<int64_t>(root);
  for (int64_t z = std::max<int64_t>(1, near - 1); z <= near + 1; ++z) {
    if (is_power(z, i, a) && is_power(z, k, c)) return true;
  }
  return false;
}

// Is x^k = y^i, exactly? With i and k coprime and reduced fractions, that is so if and only if
// numerators and denominators have a common root each.
bool powers_agree(Ratio x, int64_t k, Ratio y, int64_t i) {
  const Ratio e = reduced(i, k);
  return share_root(x.top, e.top, y.top, e.bottom) &&
         share_root(x.bottom, e.top, y.bottom, e.bottom);
}

// The largest t with n >= own (most / own)^(t / steps). Precondition: own <= n < most.
int64_t log_step(int64_t n, int64_t own, int64_t most, int64_t steps) {
  const auto ratio = [&](int64_t value) {
    return std::log(static_cast<long double>(value) / static_cast<long double>(own));
  };
  const long double exact = static_cast<long double>(steps) * ratio(n) / ratio(most);
  const long double whole = std::round(exact);
  const auto t = static_cast<int64_t>(whole);
  const bool near = std::abs(exact - whole) < 1e-9L;
  if (near && (t == 0 ? n == own : powers_agree(reduced(n, own), steps, reduced(most, own), t))) {
    return t;
  }
  return static_cast<int64_t>(std::floor(exact));
}

int64_t buckets_of_a_side(const T5Buckets& t5) {
  return t5.direction == T5Buckets::Direction::kBoth ? t5.buckets / 2 : t5.buckets;
}

}  // namespace

Status check_t5_buckets(const T5Buckets& t5) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t own = buckets_of_a_side(t5) / 2;
  if (own >= 1 && t5.buckets <= kMost && t5.max_distance > own && t5.max_distance <= kMost) {
    return {};
  }
  const bool both = t5.direction == T5Buckets::Direction::kBoth;
  return invalid_argument(message(
      {"[t5_bucket] There are ", t5.buckets, " buckets for a distance of up to ", t5.max_distance,
       ", but there must be at least ", (both ? "4" : "2"), " and the distance must exceed ",
       (both ? "a quarter" : "half"), " of them; neither may be above ", kMost, "."}));
}

uint32_t t5_bucket(int64_t relative, const T5Buckets& t5) {
  const int64_t side = buckets_of_a_side(t5);
  const bool both = t5.direction == T5Buckets::Direction::kBoth;
  // Distances beyond the last bucket's bound are all the same, and this one has no overflow.
  const int64_t clamped = std::clamp(relative, -t5.max_distance, t5.max_distance);
  const int64_t n = both ? std::abs(clamped) : std::max<int64_t>(-clamped, 0);
  const int64_t first = both && clamped > 0 ? side : 0;
  const int64_t own = side / 2;
  if (n < own) return static_cast<uint32_t>(first + n);
  if (n >= t5.max_distance) return static_cast<uint32_t>(first + side - 1);
  const int64_t bucket = own + log_step(n, own, t5.max_distance, side - own);
  return static_cast<uint32_t>(first + std::min(bucket, side - 1));
}

std::vector<double> alibi_slopes(int64_t heads) {
  std::vector<double> slopes;
  if (heads < 1) return slopes;
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const auto slope = [](double index, int64_t of) {
    return std::exp2(-8.0 * index / static_cast<double>(of));
  };
  for (int64_t h = 0; h < heads; ++h) {
    slopes.push_back(h < power ? slope(static_cast<double>(h + 1), power)
                               : slope(static_cast<double>(2 * (h - power) + 1), 2 * power));
  }
  return slopes;
}

Result<std::vector<uint32_t>> swin_relative_index(int64_t window) {
  constexpr int64_t kMost = 128;
  if (window < 1 || window > kMost) {
    return invalid_argument(message({"[swin_relative_index] The window is ", window,
                                     " a side, but must be from 1 to ", kMost, "."}));
  }
  const int64_t cells = window * window;
  std::vector<uint32_t> index(static_cast<size_t>(cells * cells));
  for (int64_t query = 0; query < cells; ++query) {
    for (int64_t key = 0; key < cells; ++key) {
      const int64_t row = query / window - key / window + window - 1;
      const int64_t column = query % window - key % window + window - 1;
      index[static_cast<size_t>(query * cells + key)] =
          static_cast<uint32_t>(row * (2 * window - 1) + column);
    }
  }
  return index;
}

}  // namespace vkformer
