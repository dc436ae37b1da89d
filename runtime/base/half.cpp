#include "base/half.h"

#include <bit>
#include <cmath>
#include <glm/gtc/packing.hpp>

namespace vkformer {

namespace {

// The first f32 that rounds to infinity: half-way between 65,504 and the 65,536 that binary16
// lacks.
constexpr float kHalfOverflow = 65520.0f;
constexpr uint16_t kHalfInfinity = 0x7c00;
constexpr uint16_t kSignBit = 0x8000;

}  // namespace

uint16_t half_from_float(float value) {
  // GLM provokes a floating-point exception on overflow, and a host may have unmasked those.
  if (std::fabs(value) >= kHalfOverflow) {
    return std::signbit(value) ? kHalfInfinity | kSignBit : kHalfInfinity;
  }
  const uint16_t bits = glm::packHalf1x16(value);
  if ((bits & 1u) == 0 || std::isnan(value)) return bits;
  // GLM rounds ties away from zero. An odd result that a tie led to has its even neighbor next to
  // it, one step towards zero. Both differences are exact in f32.
  const uint16_t even = static_cast<uint16_t>(bits - 1u);
  const bool tie = value - float_from_half(even) == float_from_half(bits) - value;
  return tie ? even : bits;
}

float float_from_half(uint16_t bits) {
  return glm::unpackHalf1x16(bits);
}

uint16_t bfloat_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    // Rounding could carry a NaN into infinity; cutting could clear all its payload. Setting the
    // quiet bit keeps it a NaN.
    return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  }
  const uint32_t lowest_kept = (bits >> 16) & 1u;
  return static_cast<uint16_t>((bits + 0x7fffu + lowest_kept) >> 16);
}

float float_from_bfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace vkformer
