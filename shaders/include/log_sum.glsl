// needs: kLocalSize, at most 128, reduce.glsl, float_bits.glsl, a storage buffer with
// `float logits[]`.
// The largest logit of a row and the logarithm of the sum of exp(logit - peak). It is NaN if a
// logit is: the log-softmax as docs/numerics.md has it. The same for every invocation of the
// workgroup, and whatever the workgroup's size. Each part of VKF_VOCAB_PART tokens has sums of
// every 128th, then a tree over these. Then comes the same over the parts.
#extension GL_EXT_control_flow_attributes : require

struct LogSum {
  float peak;
  float log;
};

const uint kSumLanes = 128u;  // as many as reduce_scratch has

float log_probability(LogSum s, float logit) { return (logit - s.peak) - s.log; }

// The sum of reduce_scratch, as a tree.
float sum_of_lanes() {
  for (uint step = kSumLanes >> 1u; step > 0u; step >>= 1u) {
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < step; i += kLocalSize)
      reduce_scratch[i] += reduce_scratch[i + step];
  }
  barrier();
  return reduce_scratch[0];
}

// What a part with the peak `part_peak` and that sum adds to a sum over `peak`.
float rescaled(float sum, float part_peak, float peak) {
  return is_negative_infinity(part_peak) ? sum : sum * exp_nonpositive(part_peak - peak);
}

// A part's peak and the sum of exp(logit - peak).
vec2 part_sum_of(uint base, uint count) {
  const uint lane = gl_LocalInvocationID.x;
  float peak = negative_infinity();
  // Compilers that know how many tokens a part has at most would unroll the loops over them.
  [[dont_unroll]] for (uint v = lane; v < count; v += kLocalSize) peak =
      logits[base + v] > peak ? logits[base + v] : peak;
  peak = workgroup_max(peak);
  barrier();
  for (uint first = lane; first < kSumLanes; first += kLocalSize) {
    float sum = 0.0;
    [[dont_unroll]] for (uint v = first; v < count; v += kSumLanes) {
      const float x = logits[base + v];
      sum += is_negative_infinity(x) ? 0.0 : exp_nonpositive(x - peak);
    }
    reduce_scratch[first] = sum;
  }
  return vec2(peak, sum_of_lanes());
}

// A row without a possible token has no softmax.
LogSum log_sum_from(float peak, float sum) {
  return LogSum(peak, is_negative_infinity(peak) && !is_nan(sum) ? make_nan() : log_of_sum(sum));
}

// Of a row that is one part.
LogSum log_sum_of(uint base, uint count) {
  const vec2 sum = part_sum_of(base, count);
  return log_sum_from(sum.x, sum.y);
}
