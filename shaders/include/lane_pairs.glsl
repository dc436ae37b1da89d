// needs: kLocalSize, at most 128, log_sum.glsl.
// Maxima and sums over a workgroup, two at once, so that two cost the barriers of one.
shared vec2 lane_pairs[kSumLanes];

vec2 larger(vec2 a, vec2 b) { return vec2(b.x > a.x ? b.x : a.x, b.y > a.y ? b.y : a.y); }

// Two maxima over the workgroup at once.
vec2 pair_max(vec2 value) {
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  lane_pairs[lane] = value;
  for (uint step = kLocalSize >> 1u; step > 0u; step >>= 1u) {
    barrier();
    if (lane < step) lane_pairs[lane] = larger(lane_pairs[lane], lane_pairs[lane + step]);
  }
  barrier();
  return lane_pairs[0];
}

// Two sums over lane_pairs at once, in the order of sum_of_lanes.
vec2 sum_of_pairs() {
  for (uint step = kSumLanes >> 1u; step > 0u; step >>= 1u) {
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < step; i += kLocalSize)
      lane_pairs[i] += lane_pairs[i + step];
  }
  barrier();
  return lane_pairs[0];
}
