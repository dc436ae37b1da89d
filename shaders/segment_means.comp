#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = mean of x over each segment of neighboring tokens; a segment of one token is a copy
// shapes:   X (B, H, S, E) -> Y (B, H, M, E), each by its HeadLayout; segment m holds tokens m S/M
//           ... (m + 1) S/M - 1
// mapping:  one workgroup a segment of one batch item and kLocalSize columns of its heads (z); an
//           invocation one column
// bounds:   H * E may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: segment_means_column__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "nystrom.h"
#include "rows.glsl"

layout(push_constant) uniform Params { SegmentMeansParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  const uint column = gl_WorkGroupID.z * kLocalSize + gl_LocalInvocationID.x;
  if (row >= p.rows || column >= p.columns) return;
  const uint batch = row / p.segments;
  const uint segment = row % p.segments;
  const uint head = column / p.width;
  const uint e = column % p.width;
  const uint from = p.x.offset + batch * p.x.batch_stride + head * p.x.head_stride +
                    segment * p.span * p.x.row_stride + e;
  float sum = 0.0;
  for (uint t = 0u; t < p.span; ++t) sum += x[from + t * p.x.row_stride];
  y[p.y.offset + batch * p.y.batch_stride + head * p.y.head_stride + segment * p.y.row_stride + e] =
      sum / float(p.span);
}
