// A number of reproducible precision on the host: each operation is that of HostArithmetic, so that
// formulas read as they do in shaders/.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/activation.h"
#include "reproducible/host_arithmetic.h"

namespace vkformer::conformance {

struct Real {
  float f = 0;
  Real() = default;
  Real(float value) : f(value) {}  // NOLINT: numbers of formulas are Reals

  uint32_t bits() const { return std::bit_cast<uint32_t>(f); }
  static Real of_bits(uint32_t word) { return {std::bit_cast<float>(word)}; }
  bool is_nan() const { return (bits() & ~kSignBit) > kInfinityBits; }
  bool is_negative_infinity() const { return bits() == (kSignBit | kInfinityBits); }

  friend Real operator+(Real a, Real b) { return HostArithmetic().add(a.f, b.f); }
  friend Real operator-(Real a, Real b) { return HostArithmetic().sub(a.f, b.f); }
  friend Real operator*(Real a, Real b) { return HostArithmetic().mul(a.f, b.f); }
  friend Real operator/(Real a, Real b) {
    HostArithmetic h;
    return divide(h, a.f, b.f);
  }
  friend Real operator-(Real a) { return of_bits(a.bits() ^ kSignBit); }
  friend bool operator<(Real a, Real b) { return HostArithmetic().smaller(a.f, b.f); }
  friend bool operator>(Real a, Real b) { return b < a; }
  Real& operator+=(Real b) { return *this = *this + b; }
  Real& operator*=(Real b) { return *this = *this * b; }
};

inline Real magnitude(Real x) {
  return Real::of_bits(x.bits() & ~kSignBit);
}
inline Real root(Real x) {
  HostArithmetic h;
  return square_root(h, x.f);
}
inline Real inverse_root(Real x) {
  return Real(1.0f) / root(x);
}
inline Real log_of_sum(Real x) {
  HostArithmetic h;
  return x.is_nan() ? x : Real(logarithm(h, x.f));
}
inline Real exp_nonpositive(Real x) {
  HostArithmetic h;
  if (x.is_nan()) return x;
  return x < -104.0f ? Real(0.0f) : Real(exponential(h, x.f));
}
inline Real at_least(Real x, Real least) {
  return !x.is_nan() && x < least ? least : x;
}
inline Real between(Real x, Real least, Real most) {
  if (x.is_nan()) return x;
  return x > most ? most : at_least(x, least);
}

// shaders/include/activation.glsl.
struct SplitExp {
  Real scale, rest;  // e^x = scale * (1 + rest)
};
inline SplitExp split_exp(Real x) {
  HostArithmetic h;
  const Real n = h.floor((x * 1.44269504f + 0.5f).f);
  const Real r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Real s = 1.98412698e-4f;
  for (const float c : {1.38888889e-3f, 8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f}) {
    s = s * r + c;
  }
  const Real scaled = (n + 127.0f) * 8388608.0f;
  return {Real::of_bits(h.to_word(scaled.f)), s * r * r + r};
}
inline Real exp_any(Real x) {
  const bool high = x > 88.0f;
  const Real near = high ? x - 1.0f : x;
  const auto [scale, rest] = split_exp(near > -87.0f ? (near < 88.0f ? near : 88.0f) : -87.0f);
  const Real y = (scale + scale * rest) * (high ? 2.71828183f : 1.0f);
  return x < -87.0f ? Real(0.0f) : y;
}
inline Real exp_of(Real x) {
  return x.is_nan() ? x : exp_any(x);
}
inline Real tanh_any(Real x) {
  const Real size = magnitude(x);
  const auto [scale, rest] = split_exp(size < 10.0f ? Real(2.0f) * size : Real(20.0f));
  const Real e = scale * rest + (scale - 1.0f);
  const Real y = e / (e + 2.0f);
  return x < 0.0f ? -y : y;
}
inline Real sigmoid_any(Real x) {
  return Real(1.0f) / (Real(1.0f) + exp_any(-x));
}
// shaders/include/softplus.glsl.
inline Real softplus(Real x) {
  if (x.is_nan()) return x;
  const Real e = exp_any(-magnitude(x));
  const Real s = e / (Real(2.0f) + e), q = s * s;
  Real sum = 1.0f / 15.0f;
  for (const float c :
       {1.0f / 13.0f, 1.0f / 11.0f, 1.0f / 9.0f, 1.0f / 7.0f, 0.2f, 1.0f / 3.0f, 1.0f}) {
    sum = sum * q + c;
  }
  return (x > 0.0f ? x : Real(0.0f)) + Real(2.0f) * s * sum;
}
inline Real erfc_positive(Real z) {
  const Real t = Real(1.0f) / (Real(1.0f) + Real(0.5f) * z);
  const Real u = t - 0.5f;
  Real s = 0.033485040068626404f;
  for (const float c :
       {-0.010731222108006477f, -0.07523130625486374f, 0.052836932241916656f, 0.09794031828641891f,
        -0.10356932133436203f, -0.17204293608665466f, 0.14576534926891327f, 0.558943510055542f,
        0.6871607303619385f, 0.5107913613319397f}) {
    s = s * u + c;
  }
  return z < 9.3f ? exp_any(-z * z) * t * s : Real(0.0f);
}
inline Real gelu_erf(Real x) {
  const Real tail = erfc_positive(magnitude(x) * 0.70710678f);
  return Real(0.5f) * x * (x > 0.0f ? Real(2.0f) - tail : tail);
}
inline Real gelu_tanh(Real x) {
  return x * sigmoid_any(Real(1.59576912f) * (x + Real(0.044715f) * x * x * x));
}
inline Real activated(Real x, ActivationKind kind) {
  if (x.is_nan()) return x;
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x > 0.0f ? x : Real(0.0f);
    case ActivationKind::kGelu:
      return gelu_erf(x);
    case ActivationKind::kGeluTanh:
      return gelu_tanh(x);
    case ActivationKind::kSilu:
      return x * sigmoid_any(x);
    case ActivationKind::kQuickGelu:
      return x * sigmoid_any(Real(1.702f) * x);
    case ActivationKind::kTanh:
      return tanh_any(x);
    case ActivationKind::kSigmoid:
      return sigmoid_any(x);
    case ActivationKind::kEluPlusOne:
      return x > 0.0f ? x + 1.0f : exp_any(x);
  }
  return x;
}

}  // namespace vkformer::conformance
