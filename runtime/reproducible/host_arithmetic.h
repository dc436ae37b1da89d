// The arithmetic of functions.h on the host: what a device computes in reproducible precision, in
// plain floats. Compiled without contraction, as all of the library (cmake/warnings.cmake).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "reproducible/functions.h"

namespace vkformer {

struct HostArithmetic {
  using F = float;
  using U = uint32_t;
  using B = bool;

  F f(float x) const { return x; }
  U u(uint32_t x) const { return x; }
  static F flushed(F x) {
    const U word = std::bit_cast<U>(x);
    return (word & kInfinityBits) == 0 ? std::bit_cast<F>(word & kSignBit) : x;
  }
  F add(F x, F y) const { return flushed(flushed(x) + flushed(y)); }
  F sub(F x, F y) const { return flushed(flushed(x) - flushed(y)); }
  // What is below the normal numbers after rounding to 24 bits is zero; a sum there needs no
  // rounding.
  F mul(F x, F y) const {
    const double exact = static_cast<double>(flushed(x)) * flushed(y);
    const bool tiny = std::fabs(exact) < 0x1p-126 * (1 - 0x1p-25);
    return tiny ? std::copysign(0.0f, static_cast<F>(exact)) : static_cast<F>(exact);
  }
  F plus(F x, F y) const { return add(x, y); }
  F minus(F x, F y) const { return sub(x, y); }
  F times(F x, F y) const { return mul(x, y); }
  U bits(F x) const { return std::bit_cast<U>(x); }
  F from_bits(U x) const { return std::bit_cast<F>(x); }
  F to_float(U x) const { return static_cast<F>(static_cast<int32_t>(x)); }
  U to_word(F x) const { return static_cast<U>(static_cast<int32_t>(x)); }
  F floor(F x) const { return std::floor(flushed(x)); }
  U iadd(U x, U y) const { return x + y; }
  U isub(U x, U y) const { return x - y; }
  U imul(U x, U y) const { return x * y; }
  U iand(U x, U y) const { return x & y; }
  U ior(U x, U y) const { return x | y; }
  U ixor(U x, U y) const { return x ^ y; }
  U shift_left(U x, U y) const { return x << y; }
  U shift_right(U x, U y) const { return x >> y; }
  B equal(U x, U y) const { return x == y; }
  B below(U x, U y) const { return x < y; }
  B less(U x, U y) const { return static_cast<int32_t>(x) < static_cast<int32_t>(y); }
  B smaller(F x, F y) const { return flushed(x) < flushed(y); }
  B both(B x, B y) const { return x && y; }
  B either(B x, B y) const { return x || y; }
  template <class T>
  T pick(B b, T x, T y) const {
    return b ? x : y;
  }
};

}  // namespace vkformer
