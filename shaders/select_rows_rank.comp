#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the K rows of each item with the largest keys, best first, of equal ones the first: a
//           row's place is how many are better
// shapes:   Keys (B, S) -> Y (B, K), rows of (B * S)
// mapping:  one workgroup kLocalSize rows of an item, which goes over all keys of the item
// bounds:   every size may be anything; K is at most S; groups beyond the last item are skipped
// requires: nothing (baseline); kLocalSize <= 128
// variants: select_rows_rank__u32_none_u32
#include "select_rows.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { SelectRowsParams p; };
layout(binding = 0) readonly buffer Keys { uint keys[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };

shared uint tile[128];

void main() {
  const uint blocks = (p.rows + kLocalSize - 1u) / kLocalSize;
  const uint group = row_group_index();
  if (group >= p.items * blocks) return;
  const uint first = group / blocks * p.rows;
  const uint lane = gl_LocalInvocationID.x;
  const uint own = group % blocks * kLocalSize + lane;
  const uint key = own < p.rows ? keys[first + own] : 0u;
  uint better = 0u;
  for (uint base = 0u; base < p.rows; base += kLocalSize) {
    barrier();
    if (base + lane < p.rows) tile[lane] = keys[first + base + lane];
    barrier();
    const uint count = min(kLocalSize, p.rows - base);
    for (uint i = 0u; i < count; ++i) {
      const uint other = tile[i];
      better += (other > key || (other == key && base + i < own)) ? 1u : 0u;
    }
  }
  if (own < p.rows && better < p.best) y[group / blocks * p.best + better] = first + own;
}
