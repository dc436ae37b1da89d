// needs: kLocalSize, at most 128, reduce.glsl, float_bits.glsl, a storage buffer with
// `float logits[]`.
// The largest logit of a row and the logarithm of the sum of exp(logit - peak), NaN if a logit is:
// the log-softmax as docs/numerics.md has it. The same for every invocation of the workgroup, and
// whatever the workgroup's size: sums of every 128th token, then a tree over these.
struct LogSum {
  float peak;
  float log;
};

float log_probability(LogSum s, float logit) { return (logit - s.peak) - s.log; }

LogSum log_sum_of(uint base, uint vocab) {
  const uint kLanes = 128u;  // as many as reduce_scratch has
  const uint lane = gl_LocalInvocationID.x;
  float peak = logits[base];
  for (uint v = lane; v < vocab; v += kLocalSize) peak = logits[base + v] > peak ? logits[base + v] : peak;
  peak = workgroup_max(peak);
  barrier();
  for (uint first = lane; first < kLanes; first += kLocalSize) {
    float sum = 0.0;
    for (uint v = first; v < vocab; v += kLanes) sum += exp_nonpositive(logits[base + v] - peak);
    reduce_scratch[first] = sum;
  }
  for (uint step = kLanes >> 1u; step > 0u; step >>= 1u) {
    barrier();
    for (uint i = lane; i < step; i += kLocalSize) reduce_scratch[i] += reduce_scratch[i + step];
  }
  barrier();
  return LogSum(peak, log_of_sum(reduce_scratch[0]));
}
