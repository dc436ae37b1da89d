// needs: nothing.
// What of a key or value goes into a cache of halves or bytes. Finite values stay finite; NaN and
// infinity stay what they are in halves, and make their run of 32 NaN in bytes.
#ifndef VKF_CACHE_PACK_GLSL
#define VKF_CACHE_PACK_GLSL
#include "float_bits.glsl"
const uint kCacheF16 = 1u;
const uint kInfinityBits = 0x7f800000u;
const float kLargestHalf = 65504.0;

uint magnitude_bits(float x) { return floatBitsToUint(x) & 0x7fffffffu; }

float inside_half(float x) {
  const uint bits = magnitude_bits(x);
  const bool too_large = bits > floatBitsToUint(kLargestHalf) && bits < kInfinityBits;
  return too_large ? sign(x) * kLargestHalf : x;
}

// Of a run by the bits of its largest magnitude, which order as the magnitudes do.
float scale_of(uint largest) {
  if (largest >= kInfinityBits) return make_nan();
  const float scale = uintBitsToFloat(largest) / 127.0;
  return scale < 1e-37 ? 0.0 : scale;  // what a device may flush is zero everywhere
}

uint byte_of(float x, float scale) {
  if (magnitude_bits(scale) >= kInfinityBits) return 1u;
  if (scale == 0.0) return 0u;
  return uint(int(clamp(floor(x / scale + 0.5), -127.0, 127.0))) & 255u;
}
#endif
