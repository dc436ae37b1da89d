// needs: nothing.
// Tests of special values by their bits: GLSL leaves comparisons, min, max and isnan of a NaN open.
#ifndef VKF_FLOAT_BITS_GLSL
#define VKF_FLOAT_BITS_GLSL

// A quiet NaN, for results that cannot be given.
float make_nan() { return uintBitsToFloat(0x7fc00000u); }

bool is_nan(float value) { return (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u; }

bool is_negative_infinity(float value) { return floatBitsToUint(value) == 0xff800000u; }

float negative_infinity() { return uintBitsToFloat(0xff800000u); }

// The larger and the smaller of a value and a limit that is a number; a NaN stays one. A comparison
// alone does not keep it: NVIDIA's compiler makes a maximum of `if (value < least) value = least`.
float at_least(float value, float least) {
  return is_nan(value) ? value : (value < least ? least : value);
}
float at_most(float value, float most) {
  return is_nan(value) ? value : (value > most ? most : value);
}
float between(float value, float least, float most) {
  return is_nan(value) ? value : (value > most ? most : (value < least ? least : value));
}

// exp for x <= 0. Below ln of the smallest denormal the result is 0 by definition and not by the
// driver's exp. NaN stays NaN by its bits: a driver's exp may turn it into a number, SwiftShader's
// does. Selections, since a branch costs more than an exp there.
float exp_nonpositive(float x) { return mix(mix(exp(x), 0.0, x < -104.0), x, is_nan(x)); }

// log of a sum that may be NaN, which stays NaN.
float log_of_sum(float x) { return is_nan(x) ? x : log(x); }
#endif
