// needs: log_sum.glsl, a storage buffer with `float part_sums[]`, which log_sum_parts has written.
// The log-softmax of a row of several parts, the same for every invocation.
LogSum log_sum_of_parts(uint base, uint parts) {
  const uint lane = gl_LocalInvocationID.x;
  float peak = negative_infinity();
  for (uint part = lane; part < parts; part += kLocalSize) {
    const float other = part_sums[base + 2u * part];
    peak = other > peak ? other : peak;
  }
  peak = workgroup_max(peak);
  barrier();
  for (uint first = lane; first < kSumLanes; first += kLocalSize) {
    float sum = 0.0;
    for (uint part = first; part < parts; part += kSumLanes) {
      sum += rescaled(part_sums[base + 2u * part + 1u], part_sums[base + 2u * part], peak);
    }
    reduce_scratch[first] = sum;
  }
  return log_sum_from(peak, sum_of_lanes());
}
