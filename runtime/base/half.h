// Conversions between f32 and the 16-bit float formats. Inline, because packers call them for every
// weight.
#pragma once

#include <bit>
#include <cstdint>

namespace vkformer {

// IEEE 754 binary16 (1 sign bit, 5 exponent bits with bias 15, 10 fraction bits), rounded to
// nearest even. What rounds beyond 65,504 becomes infinity; NaN stays NaN. Integer operations
// alone, since a host may have unmasked floating-point exceptions.
inline uint16_t half_from_float(float value) {
  constexpr uint32_t kInfinity = 0x7f800000;      // of f32
  constexpr uint32_t kOverflow = 0x477ff000;      // 65,520, half-way to what binary16 lacks
  constexpr uint32_t kLeastNormal = 0x38800000;   // 2^-14
  constexpr uint32_t kExponentStep = 112u << 23;  // between the two biases
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= kOverflow) {
    const uint32_t nan = magnitude > kInfinity ? 0x0200u | (magnitude >> 13 & 0x03ffu) : 0u;
    return static_cast<uint16_t>(sign | 0x7c00u | nan);
  }
  uint32_t dropped = 13;  // fraction bits that binary16 lacks
  uint32_t kept = magnitude - kExponentStep;
  if (magnitude < kLeastNormal) {
    // Subnormal: the leading one becomes a stored bit, and everything moves right.
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<uint16_t>(sign);  // below half of 2^-24
    kept = (magnitude & 0x007fffffu) | 0x00800000u;
    dropped = 126 - exponent;
  }
  const uint32_t half_step = 1u << (dropped - 1);
  kept += half_step - 1 + (kept >> dropped & 1u);
  return static_cast<uint16_t>(sign | kept >> dropped);
}

inline float float_from_half(uint16_t bits) {
  constexpr uint32_t kExponentStep = 112u << 23;
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
  uint32_t wide = magnitude + kExponentStep;
  if (magnitude >= 0x0f800000u) wide += kExponentStep;  // infinity and NaN
  if (magnitude < 0x00800000u) {
    // Subnormal: a multiple of 2^-24. Both terms are normal, so that flushing changes nothing.
    constexpr uint32_t kTwoToMinus14 = 0x38800000;
    const float value = std::bit_cast<float>(magnitude | kTwoToMinus14) - 0x1p-14f;
    wide = std::bit_cast<uint32_t>(value);
  }
  return std::bit_cast<float>(sign | wide);
}

// bfloat16: the upper half of an f32, rounded to nearest even.
inline uint16_t bfloat_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    // Rounding could carry a NaN into infinity; cutting could clear all its payload. Setting the
    // quiet bit keeps it a NaN.
    return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  }
  const uint32_t lowest = (bits >> 16) & 1u;
  return static_cast<uint16_t>((bits + 0x7fffu + lowest) >> 16);
}

inline float float_from_bfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace vkformer
