#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the choices of rows, sorted by expert, and tiles of up to 2^tile_bits of one, for
//           expert_tiled
// shapes:   Routes (R, K + A, 2) -> List: tiles (T, 3) of expert, first place, count; then the
//           order (pairs) of choices row * K + k, T = (pairs >> tile_bits) + X
// mapping:  one workgroup an expert, on x; an invocation a run of choices, which keep their order
// bounds:   anything; tiles beyond an expert's last have a count of 0
// requires: nothing (baseline)
// variants: expert_order_expert__u32_none_u32
#include "experts.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

layout(push_constant) uniform Params { ExpertOrderParams p; };
layout(binding = 0) readonly buffer Routes { uint routes[]; };
layout(binding = 1) writeonly buffer List { uint list[]; };

shared uvec2 counts[kLocalSize];  // choices of experts before this one, and of it

uint expert_of(uint pair) {
  const uint row = p.first_row + pair / p.choices;
  return routes[2u * (row * p.entries + pair % p.choices)];
}

void main() {
  const uint expert = gl_WorkGroupID.x;
  const uint lane = gl_LocalInvocationID.x;
  const uint run = (p.pairs + kLocalSize - 1u) / kLocalSize;
  const uint begin = min(lane * run, p.pairs);
  const uint end = min(begin + run, p.pairs);
  uvec2 own = uvec2(0u);
  for (uint i = begin; i < end; ++i) {
    const uint other = expert_of(i);
    own += uvec2(other < expert ? 1u : 0u, other == expert ? 1u : 0u);
  }
  counts[lane] = own;
  barrier();
  uvec2 all = uvec2(0u);
  uint before = 0u;
  for (uint l = 0u; l < kLocalSize; ++l) {
    if (l == lane) before = all.y;
    all += counts[l];
  }
  uint place = p.order + all.x + before;
  for (uint i = begin; i < end; ++i) {
    if (expert_of(i) == expert) list[place++] = i;
  }
  // Tiles of expert x begin at (place >> tile_bits) + x, which leaves each as many as it may need.
  const uint first = (all.x >> p.tile_bits) + expert;
  const uint last = (all.x + all.y >> p.tile_bits) + expert + 1u;
  for (uint t = first + lane; t < last; t += kLocalSize) {
    const uint done = min(t - first << p.tile_bits, all.y);
    list[3u * t] = expert;
    list[3u * t + 1u] = all.x + done;
    list[3u * t + 2u] = min(all.y - done, 1u << p.tile_bits);
  }
}
