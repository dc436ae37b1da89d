// needs: philox.glsl, sampling.h.
// Standard Gumbel noise of a token. The K largest of log-probabilities with such noise are K tokens
// drawn one after the other without being put back (Kool et al. 2019, "Stochastic Beams and Where
// to Find Them"). `step` counts generated tokens.
float gumbel(ChoiceRow c, uint step, uint token) {
  const uint bits = philox(uvec2(c.seed_low, c.seed_high), uvec4(step, c.stream, token, 1u)).x;
  // An odd multiple of 2^-24, and so neither 0 nor 1. Near 1 its logarithm is a series: GLSL's may
  // be off by more than there is.
  const float u = (float(bits >> 9u) + 0.5) / 8388608.0;
  const float t = 1.0 - u;
  const float surprise = t < 0.03 ? t * (1.0 + t * (0.5 + t * (1.0 / 3.0 + t * 0.25))) : -log(u);
  return -log(surprise);
}
