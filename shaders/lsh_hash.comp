#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: bucket = argmax over [x R | -x R] of a random rotation R, its first index on ties, per
//           factor of the buckets; masked tokens go into the last bucket (Andoni et al. 2015)
// shapes:   X (B, H, S, E) by its HeadLayout, Rotations (H, E, R, columns), Mask (B, ceil(S/32))
//           words -> Y (B, H, R, S)
// mapping:  a workgroup owns kLocalSize tokens of one round of one head, an invocation one of them
// bounds:   every size may be anything; tokens and units beyond the last are skipped; Mask may be
//           unused
// requires: nothing (baseline); subgroup shuffle and kLocalSize the subgroup size, 4 or 8, in the
//           _subgroup variant, for software devices: lanes load a row of rotations together
// variants: lsh_hash_token__f32_f32_u32
//           lsh_hash_token__f32_f32_u32_subgroup FEATURES subgroup software
#ifdef VKF_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "lsh.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LSH_HASH_CONSTANTS)

#include "float_bits.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LshHashParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Rotations { float rotations[]; };
layout(binding = 2) readonly buffer Mask { uint mask[]; };
layout(binding = 3) writeonly buffer Y { uint y[]; };

// A NaN wins over numbers, so that the first one is the largest, as in argmax.
bool wins(float value, float best) { return is_nan(value) ? !is_nan(best) : value > best; }

#ifdef VKF_SUBGROUP
const uint kTogether = 16u;  // columns
#else
const uint kTogether = 4u;
#endif
float sum[kTogether];

// sum = x times the columns of rotations that begin at `first`, the last one repeated after
// `count`.
void rotate(uint x_base, uint first, uint count) {
  const uint row = p.rounds * p.columns;
  [[unroll]] for (uint n = 0u; n < kTogether; ++n) sum[n] = 0.0;
  // RADV would unroll it: 1,575 instructions at a width of 64, 313 as a loop.
  [[dont_unroll]] for (uint e = 0u; e < kWidth; ++e) {
    const float value = x[x_base + e];
    const uint at = first + e * row;
#ifdef VKF_SUBGROUP
    [[unroll]] for (uint m = 0u; m < kTogether; m += kLocalSize) {
      const float mine = rotations[at + min(m + gl_SubgroupInvocationID, count - 1u)];
      [[unroll]] for (uint n = 0u; n < kLocalSize; ++n) {
        sum[m + n] = fma(value, subgroupShuffle(mine, n), sum[m + n]);
      }
    }
#else
    [[unroll]] for (uint n = 0u; n < kTogether; ++n) {
      sum[n] = fma(value, rotations[at + min(n, count - 1u)], sum[n]);
    }
#endif
  }
}

// The bucket among `factor` whose rotation columns start at `first`.
uint bucket_of(uint x_base, uint r_base, uint first, uint factor) {
  const uint half_count = factor >> 1u;
  float most = negative_infinity(), least = negative_infinity();
  uint most_at = 0u, least_at = 0u;
  for (uint c = 0u; c < half_count; c += kTogether) {
    rotate(x_base, r_base + first + c, half_count - c);
    [[unroll]] for (uint n = 0u; n < kTogether; ++n) {
      if (c + n < half_count && wins(sum[n], most)) {
        most = sum[n];
        most_at = c + n;
      }
      if (c + n < half_count && wins(-sum[n], least)) {
        least = -sum[n];
        least_at = c + n;
      }
    }
  }
  return wins(least, most) ? half_count + least_at : most_at;
}

void main() {
  const uint unit = gl_WorkGroupID.y + gl_WorkGroupID.z * kRowsPerGridLine;
  const uint own = gl_WorkGroupID.x * kLocalSize + gl_LocalInvocationID.x;
  const uint token = min(own, p.tokens - 1u);  // all lanes help to load
  if (unit >= p.units) return;
  const uint round_index = unit % p.rounds;
  const uint head = unit / p.rounds % p.heads;
  const uint batch = unit / (p.rounds * p.heads);
  const uint x_base =
      p.x.offset + batch * p.x.batch_stride + head * p.x.head_stride + token * p.x.row_stride;
  const uint r_base = (head * kWidth * p.rounds + round_index) * p.columns;
  uint bucket = 0u, first = 0u, product = 1u;
  for (uint f = 0u; f < p.factor_count; ++f) {
    bucket += product * bucket_of(x_base, r_base, first, p.factors[f]);
    first += p.factors[f] >> 1u;
    product *= p.factors[f];
  }
  if (kHasMask != 0u) {
    const uint word = mask[batch * ((p.tokens + 31u) >> 5u) + (token >> 5u)];
    if ((word & (1u << (token & 31u))) == 0u) bucket = product;
  }
  if (own < p.tokens) y[unit * p.tokens + token] = round_index * p.stride + bucket;
}
