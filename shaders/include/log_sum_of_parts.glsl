// needs: kLocalSize, log_sum.glsl, vec2 part_sum(uint part).
// The log-softmax's sum of a row of several parts, from what log_sum_parts found of each. The same
// for every invocation of the workgroup.
LogSum log_sum_of_parts(uint parts) {
  const uint lane = gl_LocalInvocationID.x;
  float peak = negative_infinity();
  for (uint part = lane; part < parts; part += kLocalSize)
    peak = part_sum(part).x > peak ? part_sum(part).x : peak;
  peak = workgroup_max(peak);
  barrier();
  for (uint first = lane; first < kSumLanes; first += kLocalSize) {
    float sum = 0.0;
    for (uint part = first; part < parts; part += kSumLanes) {
      sum += rescaled(part_sum(part).y, part_sum(part).x, peak);
    }
    reduce_scratch[first] = sum;
  }
  return log_sum_from(peak, sum_of_lanes());
}
