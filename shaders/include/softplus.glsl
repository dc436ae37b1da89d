// needs: activation.glsl.
// log(1 + exp(x)), of any x; a NaN stays one. log1p(e) of e = exp(-|x|) <= 1 is
// 2 atanh(e / (2 + e)), whose series keeps small results exact, as GLSL's log would not.
float softplus_any(float x) {
  const float e = exp_any(-abs(x));
  const float s = e / (2.0 + e);
  const float q = s * s;
  float sum = 1.0 / 15.0;
  sum = sum * q + 1.0 / 13.0;
  sum = sum * q + 1.0 / 11.0;
  sum = sum * q + 1.0 / 9.0;
  sum = sum * q + 1.0 / 7.0;
  sum = sum * q + 0.2;
  sum = sum * q + 1.0 / 3.0;
  sum = sum * q + 1.0;
  const float y = mix(0.0, x, x > 0.0) + 2.0 * s * sum;
  return is_nan(x) ? x : y;
}
