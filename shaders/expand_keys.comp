#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = [q | keys, each what all heads share, then the head's own | values] (DeepSeek-AI,
//           2024, DeepSeek-V2)
// shapes:   Q (R, H E), Shared (R, Es or more), Kv (R, H (E - Es) + H Ev): own keys of all heads,
//           then values -> Y (R, 2 H E + H Ev)
// mapping:  one workgroup a run of kChunk elements of a row of Y; runs on z, rows on x and y
// bounds:   any widths; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: expand_keys_run__f32_none_f32
#include "expand_keys.h"
#include "row_moves.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RUN_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { ExpandKeysParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer Shared { float shared_keys[]; };
layout(binding = 2) readonly buffer Kv { float kv[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint first = gl_WorkGroupID.z * kChunk;
  const uint last = min(first + kChunk, p.width);
  const uint key_width = p.joint + p.own;
  const uint kv_row = row * p.heads * (p.own + p.value_width);
  for (uint i = first + gl_LocalInvocationID.x; i < last; i += kLocalSize) {
    float value;
    if (i < p.q_width) {
      value = q[row * p.q_width + i];
    } else if (i < 2u * p.q_width) {
      const uint head = (i - p.q_width) / key_width;
      const uint column = (i - p.q_width) % key_width;
      value = column < p.joint ? shared_keys[row * p.shared_stride + column]
                               : kv[kv_row + head * p.own + column - p.joint];
    } else {
      value = kv[kv_row + p.heads * p.own + i - 2u * p.q_width];
    }
    y[row * p.width + i] = value;
  }
}
