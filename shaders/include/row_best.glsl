// needs: kLocalSize (specialization constant, workgroup width), VKF_SUBGROUP where compiled so.
// The best element of a row, as (key, index): larger keys win, then smaller indices.
#extension GL_EXT_control_flow_attributes : require
#ifdef VKF_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

#include "order_key.glsl"

shared uvec2 best_scratch[128];

// Below every key that order_key gives, and not 0.
const uint kNoKey = 1u;
uvec2 no_best() { return uvec2(kNoKey, 0xffffffffu); }

// Whether a.x > b.x, or a.y < b.y where they are equal, of keys from kNoKey on. By arithmetic:
// compilers make branches of || and &&, and three instructions of a selection among conditions.
bool is_better(uvec2 a, uvec2 b) { return a.x - uint(a.y >= b.y) >= b.x; }

uvec2 choose(bool condition, uvec2 yes, uvec2 no) { return mix(no, yes, bvec2(condition)); }

// The best over the workgroup, the same for every invocation.
uvec2 workgroup_best(uvec2 best) {
#ifdef VKF_SUBGROUP
  const uint key = subgroupMax(best.x);
  best = uvec2(key, subgroupMin(best.x == key ? best.y : 0xffffffffu));
  if (gl_NumSubgroups == 1u) return best;
  barrier();
  if (subgroupElect()) best_scratch[gl_SubgroupID] = best;
  barrier();
  best = best_scratch[0];
  for (uint i = 1u; i < gl_NumSubgroups; ++i) {
    if (is_better(best_scratch[i], best)) best = best_scratch[i];
  }
  return best;
#else
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  best_scratch[lane] = best;
  [[dont_unroll]] for (uint step = kLocalSize >> 1u; step > 0u; step >>= 1u) {
    barrier();
    if (lane < step && is_better(best_scratch[lane + step], best_scratch[lane])) {
      best_scratch[lane] = best_scratch[lane + step];
    }
  }
  barrier();
  return best_scratch[0];
#endif
}
