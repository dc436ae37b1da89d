#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = [queries, each what is turned, then what was absorbed | the line that is the key of
//           all heads] (DeepSeek-AI, 2024, DeepSeek-V2)
// shapes:   Q (R, H E), Absorbed (R, H A), Line (R, W), W - A <= E -> Y (R, (H + 1) W)
// mapping:  one workgroup a run of kChunk elements of a row of Y; runs on z, rows on x and y
// bounds:   any widths; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: latent_queries_run__f32_none_f32
#include "latent_queries.h"
#include "row_moves.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RUN_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { LatentQueriesParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Absorbed { float absorbed[]; };
layout(binding = 2) readonly buffer Line { float line[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  const uint turned = p.line - p.absorbed;
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    const uint head = i / p.line;
    const uint column = i % p.line;
    float value;
    if (head == p.heads) {
      value = line[row * p.line + column];
    } else if (column < turned) {
      value = q[(row * p.heads + head) * p.head_width + column];
    } else {
      value = absorbed[(row * p.heads + head) * p.absorbed + column - turned];
    }
    y[row * p.width + i] = value;
  }
}
