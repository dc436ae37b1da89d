// Functions of reproducible precision on the host, against IEEE 754 and against double.
#include "reproducible/functions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "reproducible/host_arithmetic.h"

namespace vkformer::testing {
namespace {

uint32_t bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}

// Equal to the bit; any NaN is as good as another one.
bool same_float(float a, float b) {
  return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b));
}

// Bits of every exponent, half of them pairs of like exponents, some with few digits.
class Operands {
 public:
  std::pair<float, float> next() {
    uint32_t a = engine_(), b = engine_();
    const uint32_t kind = engine_() % 8;
    if (kind == 0) b = (b & 0x807fffffu) | (a & 0x7f800000u);
    if (kind == 1) b &= 0xff800000u;
    if (kind == 2) a &= 0xff800fffu;
    return {std::bit_cast<float>(a), std::bit_cast<float>(b)};
  }

 private:
  std::mt19937 engine_{1};
};

// x / y, rounded as with an exponent of any size, then zero where it is below the normal numbers.
float rounded_quotient(float x, float y) {
  x = HostArithmetic::flushed(x);
  y = HostArithmetic::flushed(y);
  const float q = x / y;
  const double exact = static_cast<double>(x) / y;
  const bool tiny = q != 0 && std::fabs(static_cast<float>(exact * 0x1p64)) < 0x1p-62f;
  return tiny ? std::copysign(0.0f, q) : HostArithmetic::flushed(q);
}

// In units in the last place of `expected`.
double error_of(float got, double expected) {
  if (expected == 0) return got == 0 ? 0 : 1e9;
  return std::fabs(got - expected) / std::ldexp(1.0, std::ilogb(expected) - 23);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reproducible division rounds correctly over all exponents") {
    HostArithmetic host;
    Operands operands;
    int wrong = 0;
    for (int i = 0; i < 2'000'000; ++i) {
      const auto [x, y] = operands.next();
      wrong += same_float(divide(host, x, y), rounded_quotient(x, y)) ? 0 : 1;
    }
    CHECK(wrong == 0);
    for (const float x : {0.0f, -0.0f, 1.0f, -3.0f, INFINITY, -INFINITY, NAN}) {
      for (const float y : {0.0f, -0.0f, 1.0f, -3.0f, INFINITY, -INFINITY, NAN}) {
        CHECK_MESSAGE(same_float(divide(host, x, y), x / y), x << " / " << y);
      }
    }
  }

  TEST_CASE("reproducible square roots round correctly over all exponents") {
    HostArithmetic host;
    int wrong = 0;
    for (uint64_t word = 0; word <= 0xffffffffu; word += 2003) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(word));
      wrong += same_float(square_root(host, x), std::sqrt(HostArithmetic::flushed(x))) ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(bits_of(square_root(host, -0.0f)) == 0x80000000u);
  }

  TEST_CASE(
      "reproducible exponentials and logarithms are right to a last place over all exponents") {
    HostArithmetic host;
    double worst_exp = 0, worst_log = 0;
    for (uint64_t word = 0; word <= 0xffffffffu; word += 4001) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(word));
      const float e = exponential(host, x), l = logarithm(host, x);
      if (std::isnan(x)) {
        CHECK(std::isnan(e));
        CHECK(std::isnan(l));
        continue;
      }
      const double exact = std::exp(static_cast<double>(x));
      if (exact > 0x1.000001p-126 && exact < 0x1.fffffep127) {
        worst_exp = std::max(worst_exp, error_of(e, exact));
      } else if (exact < 0x1.fffffep-127) {
        CHECK(e == 0);
      } else if (exact > 0x1p128) {
        CHECK(e == INFINITY);
      }
      const float positive = HostArithmetic::flushed(x);
      if (positive < 0) CHECK(std::isnan(l));
      if (positive == 0) CHECK(l == -INFINITY);
      if (positive > 0 && std::isfinite(positive)) {
        worst_log = std::max(worst_log, error_of(l, std::log(static_cast<double>(positive))));
      }
    }
    CHECK(worst_exp <= 1.0);
    CHECK(worst_log <= 1.0);
    CHECK(exponential(host, -INFINITY) == 0);
    CHECK(exponential(host, INFINITY) == INFINITY);
    CHECK(exponential(host, 0) == 1);
    CHECK(logarithm(host, 1) == 0);
    CHECK(logarithm(host, INFINITY) == INFINITY);
  }

  TEST_CASE("reproducible halves are those of base/half.h") {
    HostArithmetic host;
    for (uint32_t half = 0; half < 0x10000; ++half) {
      const float x = from_half(host, half);
      const bool nan = (half & 0x7fff) > 0x7c00;
      CHECK(std::isnan(x) == nan);
      if (!nan) REQUIRE(to_half(host, x) == half);
    }
    CHECK(from_half(host, 0x0001) == 0x1p-24f);
    CHECK(from_half(host, 0x7bff) == 65504.0f);
    CHECK(to_half(host, 65519.0f) == 0x7bff);
    CHECK(to_half(host, 65520.0f) == 0x7c00);
    CHECK(to_half(host, 0x1p-25f) == 0x0000);    // halfway to the least half: to even
    CHECK(to_half(host, 0x1.8p-24f) == 0x0002);  // likewise, upwards
    CHECK(to_half(host, 1 + 0x1p-11f) == 0x3c00);
    CHECK(to_half(host, 1 + 0x1.8p-10f) == 0x3c02);
    CHECK(to_half(host, -INFINITY) == 0xfc00);
  }
}

}  // namespace vkformer::testing
