#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = mean of x over the kept tokens, zeros without any; y / max(|y|, 1e-12) if asked
// shapes:   X (B, T, D), Mask (B, ceil(T/32)) words, bit t % 32 = token t kept -> Y (B, D)
// mapping:  one workgroup `span` columns of a batch row (z: which); an invocation takes every kLocalSize-th of them
// bounds:   T and D may be anything; a token left out is never read; Mask may be unused
// requires: nothing (baseline); subgroup arithmetic in the _subgroup variant
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocalSize = 64;
layout(constant_id = 1) const uint kHasMask = 0;

#include "reduce.glsl"
#include "rows.glsl"
#include "rowwise.h"

layout(push_constant) uniform Params { MeanPoolParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Mask { uint mask[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

bool is_kept(uint batch, uint token) {
  if (kHasMask == 0u) return true;
  const uint words = (p.tokens + 31u) >> 5u;
  return (mask[batch * words + (token >> 5u)] & (1u << (token & 31u))) != 0u;
}

float column_mean(uint batch, uint column) {
  float sum = 0.0;
  uint count = 0u;
  for (uint token = 0u; token < p.tokens; ++token) {
    if (!is_kept(batch, token)) continue;
    sum += x[(batch * p.tokens + token) * p.width + column];
    ++count;
  }
  return count == 0u ? 0.0 : sum / float(count);
}

void main() {
  const uint batch = row_group_index();
  if (batch >= p.batch) return;
  const uint first = gl_WorkGroupID.z * p.span;
  const uint end = min(p.width, first + p.span);
  float divisor = 1.0;
  if (p.normalize != 0u) {
    float squares = 0.0;
    for (uint d = first + gl_LocalInvocationID.x; d < end; d += kLocalSize) {
      const float mean = column_mean(batch, d);
      squares += mean * mean;
    }
    divisor = sqrt(workgroup_sum(squares));
    if (divisor < 1e-12) divisor = 1e-12;
  }
  for (uint d = first + gl_LocalInvocationID.x; d < end; d += kLocalSize) {
    y[batch * p.width + d] = column_mean(batch, d) / divisor;
  }
}
