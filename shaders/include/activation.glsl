// needs: nothing (includes params/activation.h, float_bits.glsl).
// Own exp, tanh and erfc: GLSL promises little for the first, nothing near the ends for the second,
// and lacks the third. Every function takes any argument. A NaN comes out as the NaN it was. Bits
// settle it, because comparisons with NaN are undefined in GLSL. Selections instead of branches:
// software devices take both sides of a branch, and pay for it besides.
#ifndef VKF_ACTIVATION_GLSL
#define VKF_ACTIVATION_GLSL
#include "activation.h"
#include "float_bits.glsl"

// exp(x) = scale * (1 + rest): Cody and Waite's reduction, Taylor's series on |r| <= ln(2)/2.
// Precondition: -87 <= x <= 88.
void split_exp(float x, out float scale, out float rest) {
  const float n = floor(x * 1.44269504 + 0.5);
  const float r = (x - n * 0.693359375) + n * 2.12194440e-4;
  float s = 1.98412698e-4;
  s = s * r + 1.38888889e-3;
  s = s * r + 8.33333333e-3;
  s = s * r + 4.16666667e-2;
  s = s * r + 1.66666667e-1;
  s = s * r + 0.5;
  rest = s * r * r + r;
  scale =
      uintBitsToFloat(uint(int((n + 127.0) * 8388608.0)));  // exact; a shift is dear on SwiftShader
}

// Infinity above 88, 0 below -87 (where the value would be denormal).
float exp_any(float x) {
  // What is above 88 is e times what is one below.
  const float near = mix(x, x - 1.0, x > 88.0);
  float scale, rest;
  split_exp(near > -87.0 ? (near < 88.0 ? near : 88.0) : -87.0, scale, rest);
  const float y = (scale + scale * rest) * mix(1.0, 2.71828183, x > 88.0);
  return mix(y, 0.0, x < -87.0);
}

float exp_of(float x) { return is_nan(x) ? x : exp_any(x); }

// tanh(x) = e / (e + 2) with e = exp(2x) - 1, which keeps small arguments exact.
float tanh_any(float x) {
  const float magnitude = abs(x);
  float scale, rest;
  split_exp(magnitude < 10.0 ? 2.0 * magnitude : 20.0, scale, rest);
  const float e = scale * rest + (scale - 1.0);
  const float y = e / (e + 2.0);
  return x < 0.0 ? -y : y;
}

// erfc(z) for z >= 0: exp(-z^2) t P(t - 1/2), t = 1 / (1 + z/2). P interpolates at Chebyshev's
// points over z <= 10.5 with a relative error of 3e-8, beyond which erfc is 0 in f32.
float erfc_positive(float z) {
  const float t = 1.0 / (1.0 + 0.5 * z);
  const float u = t - 0.5;
  float s = 0.033485040068626404;
  s = s * u - 0.010731222108006477;
  s = s * u - 0.07523130625486374;
  s = s * u + 0.052836932241916656;
  s = s * u + 0.09794031828641891;
  s = s * u - 0.10356932133436203;
  s = s * u - 0.17204293608665466;
  s = s * u + 0.14576534926891327;
  s = s * u + 0.558943510055542;
  s = s * u + 0.6871607303619385;
  s = s * u + 0.5107913613319397;
  return mix(0.0, exp_any(-z * z) * t * s, z < 9.3);
}

float sigmoid_any(float x) { return 1.0 / (1.0 + exp_any(-x)); }

// x Phi(x), from the tail of the smaller side so that a large negative x does not cancel.
float gelu_erf(float x) {
  const float tail = erfc_positive(abs(x) * 0.70710678);
  return 0.5 * x * mix(tail, 2.0 - tail, x > 0.0);
}

float gelu_tanh(float x) {
  // 0.5 (1 + tanh(v)) is sigmoid(2v), which does not cancel either.
  return x * sigmoid_any(1.59576912 * (x + 0.044715 * x * x * x));
}

float apply_activation(float x, uint kind) {
  float y = x;
  if (kind == kActivationRelu) y = x > 0.0 ? x : 0.0;
  if (kind == kActivationGeluErf) y = gelu_erf(x);
  if (kind == kActivationGeluTanh) y = gelu_tanh(x);
  if (kind == kActivationSilu) y = x * sigmoid_any(x);
  if (kind == kActivationQuickGelu) y = x * sigmoid_any(1.702 * x);
  if (kind == kActivationTanh) y = tanh_any(x);
  if (kind == kActivationSigmoid) y = sigmoid_any(x);
  if (kind == kActivationEluPlusOne) y = mix(exp_any(x), x + 1.0, x > 0.0);
  return is_nan(x) ? x : y;
}
#endif
