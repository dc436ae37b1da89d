// Division, square root, exponential, logarithm and half precision, made of what every device
// computes alike. These are f32 additions, subtractions and multiplications that round to the
// nearest even, and integers. Vulkan leaves some last places of its functions' results open.
//
// One text for two arithmetics: the host's (host_arithmetic.h) and SPIR-V that the device runs
// (pin_arithmetic.cpp). An arithmetic A has F (f32), U (32-bit words) and B (truth values), and
//   f(float), u(uint32_t)            constants
//   add, sub, mul                    of F: one rounding each; denormals are zeros
//   plus, minus, times               the same where denormals do not matter.
//   bits(F), from_bits(U)            the same 32 bits
//   to_float(U), to_word(F)          of a signed number; to_word drops the fraction
//   floor(F)
//   iadd, isub, imul, iand, ior, ixor, shift_left, shift_right (of U; zeros come in)
//   equal, below (unsigned), less (signed), smaller (of F), both, either
//   pick(B, x, y)                    x where B is true; of F and of U
//
// Denormals do not matter where no operand or result is one, or where the next sum loses it.
#pragma once

#include <cstdint>

namespace vkformer {

inline constexpr uint32_t kSignBit = 0x80000000u;
inline constexpr uint32_t kInfinityBits = 0x7f800000u;
inline constexpr uint32_t kNanBits = 0x7fc00000u;
inline constexpr uint32_t kLeastNormalBits = 0x00800000u;

// What the functions below share: the parts of an f32.
template <class A>
struct FloatParts {
  using U = typename A::U;
  using B = typename A::B;
  FloatParts(A& a, typename A::F x)
      : word(a.bits(x)),
        magnitude(a.iand(word, a.u(0x7fffffffu))),
        exponent(a.shift_right(magnitude, a.u(23))),
        fraction(a.ior(a.iand(word, a.u(0x007fffffu)), a.u(kLeastNormalBits))),
        zero(a.below(magnitude, a.u(kLeastNormalBits))),
        infinite(a.equal(magnitude, a.u(kInfinityBits))),
        nan(a.below(a.u(kInfinityBits), magnitude)) {}

  U word, magnitude;
  U exponent;  // biased by 127
  U fraction;  // 24 bits, the leading one too
  B zero;      // or denormal
  B infinite, nan;
};

// x with denormals as zeros of their sign.
template <class A>
typename A::F flush(A& a, typename A::F x) {
  const auto word = a.bits(x);
  const auto tiny = a.equal(a.iand(word, a.u(kInfinityBits)), a.u(0));
  return a.from_bits(a.pick(tiny, a.iand(word, a.u(kSignBit)), word));
}

// About 1 / m for m in [1, 2), to some last places. It is Newton's iteration from a linear estimate
// on the bits. An error of 12 % is squared three times.
template <class A>
typename A::F reciprocal_estimate(A& a, typename A::F m) {
  auto r = a.from_bits(a.isub(a.u(0x7ef311c3u), a.bits(m)));
  for (int i = 0; i < 3; ++i) r = a.times(r, a.minus(a.f(2.0f), a.times(m, r)));
  return r;
}

// The f32 nearest to an unsigned word: the sum of two halves, which are exact.
template <class A>
typename A::F from_unsigned(A& a, typename A::U word) {
  const auto high = a.to_float(a.shift_right(word, a.u(16)));
  return a.plus(a.times(high, a.f(65536.0f)), a.to_float(a.iand(word, a.u(0xffffu))));
}

// x / y, correctly rounded to the nearest even; denormals are zeros before and after.
// The quotient of the fractions has 26 bits. It comes from an estimate that is off by some units
// and a remainder of integers. Modulo 2^32 the remainder is exact as long as it is small.
template <class A>
typename A::F divide(A& a, typename A::F x, typename A::F y) {
  const FloatParts<A> n(a, x), d(a, y);
  const auto one = a.u(0x3f800000u);
  const auto mask = a.u(0x007fffffu);
  const auto m = a.from_bits(a.ior(a.iand(d.word, mask), one));
  const auto r = reciprocal_estimate(a, m);
  // 1 where the quotient of the fractions is below 1.
  const auto shift = a.pick(a.below(n.fraction, d.fraction), a.u(1), a.u(0));
  const auto scaled = a.times(a.from_bits(a.ior(a.iand(n.word, mask), one)), r);
  const auto lift = a.from_bits(a.shift_left(a.iadd(a.u(127 + 25), shift), a.u(23)));
  auto q = a.to_word(a.times(scaled, lift));
  const auto dividend = a.shift_left(n.fraction, a.iadd(a.u(25), shift));
  auto rest = a.isub(dividend, a.imul(q, d.fraction));
  const auto off = a.to_word(a.times(a.times(a.to_float(rest), r), a.f(0x1p-23f)));
  q = a.iadd(q, off);
  rest = a.isub(rest, a.imul(off, d.fraction));
  const auto over = a.less(rest, a.u(0));
  q = a.pick(over, a.isub(q, a.u(1)), q);
  rest = a.pick(over, a.iadd(rest, d.fraction), rest);
  const auto under = a.less(a.isub(d.fraction, a.u(1)), rest);
  q = a.pick(under, a.iadd(q, a.u(1)), q);
  rest = a.pick(under, a.isub(rest, d.fraction), rest);

  // To 24 bits: the two lowest, what is left, and the parity of the result decide.
  const auto kept = a.shift_right(q, a.u(2));
  const auto tail =
      a.ior(a.shift_left(a.iand(q, a.u(3)), a.u(1)), a.pick(a.equal(rest, a.u(0)), a.u(0), a.u(1)));
  const auto up = a.below(a.u(4), a.ior(tail, a.iand(kept, a.u(1))));
  const auto rounded = a.pick(up, a.iadd(kept, a.u(1)), kept);
  const auto exponent = a.isub(a.iadd(a.isub(n.exponent, d.exponent), a.u(127)), shift);
  auto word = a.isub(a.iadd(a.shift_left(exponent, a.u(23)), rounded), a.u(kLeastNormalBits));
  // Exponents are -126 to 381, so that the word has its sign bit where it is far too large or
  // small.
  const auto large = a.less(a.u(254), exponent);
  const auto small = a.less(exponent, a.u(0));
  const auto huge =
      a.either(large, a.both(a.less(a.u(0), exponent), a.below(a.u(kInfinityBits - 1), word)));
  const auto tiny = a.either(small, a.below(word, a.u(kLeastNormalBits)));
  word = a.pick(tiny, a.u(0), word);
  word = a.pick(huge, a.u(kInfinityBits), word);
  word = a.pick(a.either(n.zero, d.infinite), a.u(0), word);
  word = a.pick(a.either(d.zero, n.infinite), a.u(kInfinityBits), word);
  word = a.ior(word, a.iand(a.ixor(n.word, d.word), a.u(kSignBit)));
  const auto open = a.either(a.both(n.zero, d.zero), a.both(n.infinite, d.infinite));
  const auto nan = a.either(a.either(n.nan, d.nan), open);
  return a.from_bits(a.pick(nan, a.u(kNanBits), word));
}

// The square root, correctly rounded; NaN of what is below 0, -0 of -0 and of negative denormals.
template <class A>
typename A::F square_root(A& a, typename A::F x) {
  const FloatParts<A> p(a, x);
  // x = m 4^e with m in [1, 4): an exponent of even distance from 127, or one more.
  const auto odd = a.iand(a.iadd(p.exponent, a.u(1)), a.u(1));
  const auto m = a.from_bits(
      a.ior(a.iand(p.word, a.u(0x007fffffu)), a.shift_left(a.iadd(a.u(127), odd), a.u(23))));
  // About 1 / sqrt(m): a linear estimate on the bits, then Newton's iteration.
  auto y = a.from_bits(a.isub(a.u(0x5f3759dfu), a.shift_right(a.bits(m), a.u(1))));
  const auto half = a.times(m, a.f(0.5f));
  for (int i = 0; i < 3; ++i) {
    y = a.times(y, a.minus(a.f(1.5f), a.times(a.times(half, y), y)));
  }
  // The root of fraction 2^(25 + odd) has 25 bits.
  const auto square = a.shift_left(p.fraction, a.iadd(a.u(25), odd));
  auto root = a.to_word(a.times(a.times(m, y), a.f(0x1p24f)));
  auto rest = a.isub(square, a.imul(root, root));
  const auto off = a.to_word(a.times(a.times(a.to_float(rest), y), a.f(0x1p-25f)));
  root = a.iadd(root, off);
  rest = a.isub(square, a.imul(root, root));
  for (int i = 0; i < 2; ++i) {
    const auto over = a.less(rest, a.u(0));
    root = a.pick(over, a.isub(root, a.u(1)), root);
    rest = a.pick(over, a.iadd(rest, a.iadd(a.shift_left(root, a.u(1)), a.u(1))), rest);
    const auto doubled = a.shift_left(root, a.u(1));
    const auto under = a.less(doubled, rest);
    rest = a.pick(under, a.isub(rest, a.iadd(doubled, a.u(1))), rest);
    root = a.pick(under, a.iadd(root, a.u(1)), root);
  }
  // No root of 24 bits lies halfway between two numbers of 24 bits.
  const auto rounded = a.iadd(a.shift_right(root, a.u(1)), a.iand(root, a.u(1)));
  const auto exponent = a.shift_right(a.iadd(a.isub(p.exponent, odd), a.u(127)), a.u(1));
  auto word = a.isub(a.iadd(a.shift_left(exponent, a.u(23)), rounded), a.u(kLeastNormalBits));
  word = a.pick(p.zero, a.iand(p.word, a.u(kSignBit)), word);
  word = a.pick(p.infinite, a.u(kInfinityBits), word);
  const auto negative =
      a.both(a.less(p.word, a.u(0)), a.less(a.u(kLeastNormalBits - 1), p.magnitude));
  return a.from_bits(a.pick(a.either(p.nan, negative), a.u(kNanBits), word));
}

// e^x: x = n ln 2 + r with |r| <= ln(2) / 2 (Cody and Waite, 1980). Then the Taylor series of e^r
// to r^7, whose rest is below 2^-27, and 2^n in two factors. 0 where the result would be denormal.
template <class A>
typename A::F exponential(A& a, typename A::F x) {
  const FloatParts<A> p(a, x);
  const auto low = a.smaller(x, a.f(-87.33654f));
  const auto high = a.smaller(a.f(88.72283f), x);
  const auto inside = a.pick(a.either(a.either(low, high), p.nan), a.f(0.0f), x);
  const auto n = a.floor(a.plus(a.times(inside, a.f(1.44269504f)), a.f(0.5f)));
  // ln 2 in two parts: the first has 15 bits, so that n times it is exact.
  const auto r = a.minus(a.minus(inside, a.times(n, a.f(0.693145751953125f))),
                         a.times(n, a.f(1.42860677e-6f)));
  auto sum = a.f(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f}) {
    sum = a.plus(a.times(sum, r), a.f(c));
  }
  sum = a.plus(a.plus(a.times(a.times(sum, r), r), r), a.f(1.0f));
  const auto whole = a.iadd(a.to_word(n), a.u(254));  // both exponents with their bias
  const auto first = a.shift_right(whole, a.u(1));
  const auto power = [&](typename A::U e) { return a.from_bits(a.shift_left(e, a.u(23))); };
  auto y = a.times(a.times(sum, power(first)), power(a.isub(whole, first)));
  y = a.pick(low, a.f(0.0f), y);
  y = a.pick(high, a.from_bits(a.u(kInfinityBits)), y);
  return a.pick(p.nan, a.from_bits(a.u(kNanBits)), y);
}

// ln x: x = m 2^e with m in [sqrt(1/2), sqrt(2)). Then 2 artanh((m - 1) / (m + 1)) as a series to
// the eleventh power. -infinity of 0 and of denormals, NaN of what is below.
template <class A>
typename A::F logarithm(A& a, typename A::F x) {
  const FloatParts<A> p(a, x);
  // Steps of the exponent at sqrt(2) in place of 2.
  const auto raised = a.iadd(a.isub(p.magnitude, a.u(0x3f3504f3u)), a.u(0x3f800000u));
  const auto e = a.isub(a.shift_right(raised, a.u(23)), a.u(127));
  const auto m = a.from_bits(a.isub(p.magnitude, a.shift_left(e, a.u(23))));
  const auto f = a.minus(m, a.f(1.0f));
  const auto s = divide(a, f, a.plus(m, a.f(1.0f)));
  const auto z = a.times(s, s);
  auto sum = a.f(2.0f / 11);
  for (const float c : {2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3})
    sum = a.plus(a.times(sum, z), a.f(c));
  // 2 s = f - s f, which keeps the leading term exact.
  const auto small = a.minus(a.times(a.times(sum, z), s), a.times(s, f));
  const auto n = a.to_float(e);
  // As in `exponential`: n times the first part of ln 2 is exact.
  const auto tail = a.plus(small, a.times(n, a.f(1.42860677e-6f)));
  auto y = a.plus(a.times(n, a.f(0.693145751953125f)), a.plus(f, tail));
  y = a.pick(p.infinite, x, y);
  const auto negative = a.less(p.word, a.u(0));
  y = a.pick(a.either(p.nan, negative), a.from_bits(a.u(kNanBits)), y);
  return a.pick(p.zero, a.from_bits(a.u(kSignBit | kInfinityBits)), y);
}

// x^y for x above 0: e^(y ln x).
template <class A>
typename A::F power(A& a, typename A::F x, typename A::F y) {
  return exponential(a, a.mul(y, logarithm(a, x)));
}

// The f32 of a half in the lower 16 bits; denormal halves are f32 that are not.
template <class A>
typename A::F from_half(A& a, typename A::U half) {
  const auto sign = a.shift_left(a.iand(half, a.u(0x8000u)), a.u(16));
  const auto magnitude = a.shift_left(a.iand(half, a.u(0x7fffu)), a.u(13));
  const auto normal = a.iadd(magnitude, a.u(112u << 23));
  // 2^-14 (1 + fraction) - 2^-14
  const auto small =
      a.bits(a.minus(a.from_bits(a.iadd(magnitude, a.u(113u << 23))), a.f(0x1p-14f)));
  const auto special = a.ior(magnitude, a.u(kInfinityBits));
  auto word = a.pick(a.below(magnitude, a.u(0x00800000u)), small, normal);
  word = a.pick(a.below(magnitude, a.u(0x0f800000u)), word, special);
  return a.from_bits(a.ior(word, sign));
}

// The half nearest to x, ties to even, in the lower 16 bits; infinity from 65,520 on.
template <class A>
typename A::U to_half(A& a, typename A::F x) {
  const FloatParts<A> p(a, x);
  const auto sign = a.iand(a.shift_right(p.word, a.u(16)), a.u(0x8000u));
  const auto parity = a.iand(a.shift_right(p.magnitude, a.u(13)), a.u(1));
  const auto biased = a.isub(p.magnitude, a.u(112u << 23));
  const auto normal = a.shift_right(a.iadd(a.iadd(biased, a.u(0x0fffu)), parity), a.u(13));
  // Adding 0.5 rounds at the place of the last bit of a denormal half.
  const auto small = a.isub(a.bits(a.plus(a.from_bits(p.magnitude), a.f(0.5f))), a.u(0x3f000000u));
  auto word = a.pick(a.below(p.magnitude, a.u(113u << 23)), small, normal);
  word = a.pick(a.below(p.magnitude, a.u(0x477ff000u)), word, a.u(0x7c00u));
  word = a.pick(p.nan, a.u(0x7e00u), word);
  return a.ior(word, sign);
}

}  // namespace vkformer
