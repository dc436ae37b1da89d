// needs: kLocalSize, reduce.glsl, float_bits.glsl, a storage buffer with `float logits[]`.
// The logarithm of the sum of the exponentials of a row of logits; NaN if one of them is. The same for
// every invocation of the workgroup.
float log_sum_of(uint base, uint vocab) {
  const uint lane = gl_LocalInvocationID.x;
  float peak = logits[base];
  for (uint v = lane; v < vocab; v += kLocalSize) peak = logits[base + v] > peak ? logits[base + v] : peak;
  peak = workgroup_max(peak);
  float sum = 0.0;
  for (uint v = lane; v < vocab; v += kLocalSize) sum += exp_nonpositive(logits[base + v] - peak);
  return peak + log_of_sum(workgroup_sum(sum));
}
