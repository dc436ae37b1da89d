// needs: kLocalSize (specialization constant, workgroup width), VKF_SUBGROUP where compiled so.
// Sums and maxima over a workgroup, the same value for every invocation. The baseline form is a
// tree in shared memory; the subgroup form reduces in registers first. NaN propagates through sums.
// Maxima use a comparison that keeps the accumulated value where the other is NaN. So callers that
// must report NaN take it from the sum.
#ifdef VKF_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

shared float reduce_scratch[128];

float workgroup_sum(float value) {
#ifdef VKF_SUBGROUP
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1u) return value;
  barrier();
  if (subgroupElect()) reduce_scratch[gl_SubgroupID] = value;
  barrier();
  value = 0.0;
  for (uint i = 0u; i < gl_NumSubgroups; ++i) value += reduce_scratch[i];
  return value;
#else
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  reduce_scratch[lane] = value;
  for (uint step = kLocalSize >> 1u; step > 0u; step >>= 1u) {
    barrier();
    if (lane < step) reduce_scratch[lane] += reduce_scratch[lane + step];
  }
  barrier();
  return reduce_scratch[0];
#endif
}

float workgroup_max(float value) {
#ifdef VKF_SUBGROUP
  value = subgroupMax(value);
  if (gl_NumSubgroups == 1u) return value;
  barrier();
  if (subgroupElect()) reduce_scratch[gl_SubgroupID] = value;
  barrier();
  value = reduce_scratch[0];
  for (uint i = 1u; i < gl_NumSubgroups; ++i) {
    const float other = reduce_scratch[i];
    value = other > value ? other : value;
  }
  return value;
#else
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  reduce_scratch[lane] = value;
  for (uint step = kLocalSize >> 1u; step > 0u; step >>= 1u) {
    barrier();
    if (lane < step) {
      const float other = reduce_scratch[lane + step];
      if (other > reduce_scratch[lane]) reduce_scratch[lane] = other;
    }
  }
  barrier();
  return reduce_scratch[0];
#endif
}
