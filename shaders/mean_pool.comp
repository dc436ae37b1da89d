#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = mean, maximum, last, weighted mean (weight t + 1) or sum / sqrt(count) of x over
//           the kept tokens, zeros without any; y / max(|y|, 1e-12) if asked
// shapes:   X (B, T, D), Mask (B, ceil(T/32)) words, bit t % 32 = token t kept -> Y (B, D)
// mapping:  one workgroup `span` columns of a batch row (z: which); an invocation takes every
//           kLocalSize-th of them, kColumns at a time
// bounds:   T and D may be anything; a masked token is never read; Mask may be unused
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
// variants: mean_pool_row__f32_none_f32
//           mean_pool_row__f32_none_f32_subgroup FEATURES subgroup
#extension GL_EXT_control_flow_attributes : require
#include "rowwise.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MEAN_POOL_CONSTANTS)

#include "float_bits.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { MeanPoolParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Mask { uint mask[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

bool is_kept(uint batch, uint token) {
  if (kHasMask == 0u) return true;
  const uint words = (p.tokens + 31u) >> 5u;
  return (mask[batch * words + (token >> 5u)] & (1u << (token & 31u))) != 0u;
}

// `pooled` with one more value, of a token of that number; `first`: there was none before.
float with_token(float pooled, float value, uint token, bool first) {
  if (kKind == VKF_POOL_LAST) return value;
  if (kKind == VKF_POOL_MAX)
    return first || !(is_nan(pooled) || (!is_nan(value) && value <= pooled)) ? value : pooled;
  if (kKind == VKF_POOL_WEIGHTED_MEAN) return pooled + float(token + 1u) * value;
  return pooled + value;
}

// What sums are divided by, of `count` tokens whose weights sum up to `weight`.
float divisor_of(uint count, float weight) {
  if (kKind == VKF_POOL_LAST || kKind == VKF_POOL_MAX) return 1.0;
  if (kKind == VKF_POOL_WEIGHTED_MEAN) return weight;
  return kKind == VKF_POOL_MEAN_SQRT_LENGTH ? sqrt(float(count)) : float(count);
}

// What is pooled of the columns `column` + c * kLocalSize; those beyond the last are the last
// one's. One loop: what goes round inside another counts for a software device's limit
// (leaves_loops).
void pool_columns(uint batch, uint column, out float pooled[kColumns]) {
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) pooled[c] = 0.0;
  uint count = 0u;
  float weight = 0.0;
  for (uint token = 0u; token < p.tokens; ++token) {
    if (!is_kept(batch, token)) continue;
    const uint row = (batch * p.tokens + token) * p.width;
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const float value = x[row + min(column + c * kLocalSize, p.width - 1u)];
      pooled[c] = with_token(pooled[c], value, token, count == 0u);
    }
    if (kKind == VKF_POOL_WEIGHTED_MEAN) weight += float(token + 1u);
    ++count;
  }
  const float divisor = divisor_of(count, weight);
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) pooled[c] =
      count == 0u ? 0.0 : pooled[c] / divisor;
}

void main() {
  const uint batch = row_group_index();
  if (batch >= p.batch) return;
  const uint first = gl_WorkGroupID.z * p.span + gl_LocalInvocationID.x;
  const uint end = min(p.width, (gl_WorkGroupID.z + 1u) * p.span);
  float pooled[kColumns];
  float divisor = 1.0;
  if (p.normalize != 0u) {
    float squares = 0.0;
    for (uint d = first; d < end; d += kLocalSize * kColumns) {
      pool_columns(batch, d, pooled);
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        if (d + c * kLocalSize < end) squares += pooled[c] * pooled[c];
      }
    }
    divisor = at_least(sqrt(workgroup_sum(squares)), 1e-12);
  }
  for (uint d = first; d < end; d += kLocalSize * kColumns) {
    pool_columns(batch, d, pooled);
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      if (d + c * kLocalSize < end) y[batch * p.width + d + c * kLocalSize] = pooled[c] / divisor;
    }
  }
}
