// Conversions between f32 and the 16-bit float formats. Needs: GLM (whose ties half.cpp corrects).
#pragma once

#include <cstdint>

namespace vkformer {

// IEEE 754 binary16, round to nearest even; beyond 65,504 becomes infinity, NaN stays NaN.
uint16_t half_from_float(float value);
float float_from_half(uint16_t bits);

// bfloat16: the upper half of an f32, round to nearest even.
uint16_t bfloat_from_float(float value);
float float_from_bfloat(uint16_t bits);

}  // namespace vkformer
