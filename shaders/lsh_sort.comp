#version 450
#extension GL_GOOGLE_include_directive : require
// computes: one pass of a stable radix sort of positions by their bucket's digit: counts, their
//           sums, places
// shapes:   Buckets (B, H, R, S), From (B, H, R, S) positions of the pass before -> To (B, H, R, S)
// mapping:  a workgroup owns one round of one head; an invocation owns S / kLocalSize positions in
//           a row, so that equal digits keep their order
// bounds:   S may be anything; units beyond the last are skipped; the first pass reads no From
// requires: nothing (baseline)
// variants: lsh_sort_unit__u32_none_u32
#include "lsh.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LSH_SORT_CONSTANTS)

#include "rows.glsl"

layout(push_constant) uniform Params { LshSortParams p; };
layout(binding = 0) readonly buffer Buckets { uint buckets[]; };
layout(binding = 1) readonly buffer From { uint from[]; };
layout(binding = 2) writeonly buffer To { uint to[]; };

shared uint counts[VKF_SORT_DIGITS * kLocalSize];  // (digits, invocations)
shared uint totals[VKF_SORT_DIGITS];

uint position_at(uint base, uint i) { return kFirstPass != 0u ? i : from[base + i]; }

uint digit_of(uint base, uint first_bucket, uint position) {
  return ((buckets[base + position] - first_bucket) >> p.shift) & (VKF_SORT_DIGITS - 1u);
}

void main() {
  const uint unit = row_group_index();
  if (unit >= p.units) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint base = unit * p.tokens;
  const uint first_bucket = unit % p.rounds * p.stride;
  const uint run = (p.tokens + kLocalSize - 1u) / kLocalSize;
  const uint begin = min(lane * run, p.tokens);
  const uint end = min(begin + run, p.tokens);
  for (uint d = 0u; d < VKF_SORT_DIGITS; ++d) counts[d * kLocalSize + lane] = 0u;
  for (uint i = begin; i < end; ++i) {
    ++counts[digit_of(base, first_bucket, position_at(base, i)) * kLocalSize + lane];
  }
  barrier();
  // What stands before each invocation's share of a digit, and how many the digit has.
  for (uint d = lane; d < VKF_SORT_DIGITS; d += kLocalSize) {
    uint sum = 0u;
    for (uint n = 0u; n < kLocalSize; ++n) {
      const uint count = counts[d * kLocalSize + n];
      counts[d * kLocalSize + n] = sum;
      sum += count;
    }
    totals[d] = sum;
  }
  barrier();
  uint before = 0u;
  for (uint d = 0u; d < VKF_SORT_DIGITS; ++d) {
    counts[d * kLocalSize + lane] += before;
    before += totals[d];
  }
  for (uint i = begin; i < end; ++i) {
    const uint position = position_at(base, i);
    const uint slot = digit_of(base, first_bucket, position) * kLocalSize + lane;
    to[base + counts[slot]] = position;
    ++counts[slot];
  }
}
