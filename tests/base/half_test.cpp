#include "base/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace vkformer;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// binary16 from its definition: sign, 5 exponent bits with bias 15, 10 fraction bits.
double half_value(uint32_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double fraction = bits & 1023u;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024.0 + fraction, exponent - 25);
}

// Nearest, ties to even, by comparing distances; for finite positive values below 65,520.
uint16_t nearest_half(float value, uint32_t guess) {
  uint32_t best = guess;
  for (uint32_t bits = guess > 1 ? guess - 2 : 0; bits <= guess + 2 && bits < 0x7c00u; ++bits) {
    const double distance = std::fabs(half_value(bits) - static_cast<double>(value));
    const double shortest = std::fabs(half_value(best) - static_cast<double>(value));
    if (distance < shortest || (distance == shortest && bits % 2 == 0)) best = bits;
  }
  return static_cast<uint16_t>(best);
}

bool is_half_nan(uint16_t bits) {
  return (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("half: every pattern widens to its value and comes back as it was") {
    for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
      const uint16_t half = static_cast<uint16_t>(bits);
      const float wide = float_from_half(half);
      if (is_half_nan(half)) {
        REQUIRE(std::isnan(wide));
        REQUIRE(is_half_nan(half_from_float(wide)));
        continue;
      }
      if ((bits & 0x7fffu) == 0x7c00u) {
        REQUIRE(std::isinf(wide));
      } else {
        REQUIRE(static_cast<double>(wide) == half_value(bits));
      }
      REQUIRE(half_from_float(wide) == half);
    }
  }

  TEST_CASE("half: known values") {
    CHECK(half_from_float(0.0f) == 0x0000);
    CHECK(half_from_float(-0.0f) == 0x8000);
    CHECK(half_from_float(1.0f) == 0x3c00);
    CHECK(half_from_float(-2.0f) == 0xc000);
    CHECK(half_from_float(1.0f / 3.0f) == 0x3555);
    CHECK(half_from_float(65504.0f) == 0x7bff);
    CHECK(half_from_float(std::ldexp(1.0f, -14)) == 0x0400);
    CHECK(half_from_float(std::ldexp(1.0f, -24)) == 0x0001);
    CHECK(float_from_half(0x3555) == 0.333251953125f);
  }

  TEST_CASE("half: too large becomes infinity, too small becomes zero") {
    CHECK(half_from_float(65519.996f) == 0x7bff);
    CHECK(half_from_float(65520.0f) == 0x7c00);
    CHECK(half_from_float(-65520.0f) == 0xfc00);
    CHECK(half_from_float(1e30f) == 0x7c00);
    CHECK(half_from_float(kInfinity) == 0x7c00);
    CHECK(half_from_float(-kInfinity) == 0xfc00);
    CHECK(half_from_float(1e-30f) == 0x0000);
    CHECK(half_from_float(-1e-30f) == 0x8000);
    CHECK(half_from_float(std::numeric_limits<float>::denorm_min()) == 0x0000);
  }

  TEST_CASE("half: the middle of every two neighbours goes to the even one") {
    for (uint32_t bits = 0; bits < 0x7bffu; ++bits) {
      const float low = float_from_half(static_cast<uint16_t>(bits));
      const float high = float_from_half(static_cast<uint16_t>(bits + 1));
      const float middle = low + (high - low) * 0.5f;
      const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      REQUIRE(half_from_float(middle) == even);
      REQUIRE(half_from_float(-middle) == (even | 0x8000u));
      REQUIRE(half_from_float(std::nextafter(middle, 0.0f)) == bits);
      REQUIRE(half_from_float(std::nextafter(middle, kInfinity)) == bits + 1);
    }
  }

  TEST_CASE("half: random floats go to the nearest half") {
    std::mt19937 random(7);
    for (int i = 0; i < 100000; ++i) {
      // Exponents 2^-27 to 2^15, the range in which halves differ.
      const uint32_t exponent = 100 + random() % 43;
      const float value =
          std::bit_cast<float>((exponent << 23) | (static_cast<uint32_t>(random()) & 0x7fffffu));
      if (value >= 65520.0f) continue;
      const uint16_t half = half_from_float(value);
      REQUIRE(half == nearest_half(value, half));
    }
  }

  TEST_CASE("half: NaN stays NaN, whatever its payload") {
    for (const uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu, 0x7f802000u}) {
      CHECK(is_half_nan(half_from_float(std::bit_cast<float>(bits))));
    }
  }

  TEST_CASE("bfloat: every pattern comes back as it was") {
    for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
      const uint16_t bfloat = static_cast<uint16_t>(bits);
      const float wide = float_from_bfloat(bfloat);
      if (std::isnan(wide)) {
        REQUIRE(std::isnan(float_from_bfloat(bfloat_from_float(wide))));
      } else {
        REQUIRE(bfloat_from_float(wide) == bfloat);
      }
    }
  }

  TEST_CASE("bfloat: known values, ties to even, overflow") {
    CHECK(bfloat_from_float(1.0f) == 0x3f80);
    CHECK(bfloat_from_float(-0.0f) == 0x8000);
    CHECK(bfloat_from_float(3.14159265f) == 0x4049);
    CHECK(bfloat_from_float(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
    CHECK(bfloat_from_float(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
    CHECK(bfloat_from_float(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
    CHECK(bfloat_from_float(std::numeric_limits<float>::max()) == 0x7f80);
    CHECK(bfloat_from_float(std::numeric_limits<float>::lowest()) == 0xff80);
    CHECK(bfloat_from_float(kInfinity) == 0x7f80);
    CHECK(float_from_bfloat(0x4049) == 3.140625f);
  }

  TEST_CASE("bfloat: NaN stays NaN, whatever its payload") {
    for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
      const uint16_t bfloat = bfloat_from_float(std::bit_cast<float>(bits));
      CHECK(std::isnan(float_from_bfloat(bfloat)));
      CHECK((bfloat >> 15) == (bits >> 31));
    }
  }
}
