#version 450
#extension GL_GOOGLE_include_directive : require
// computes: words[i] = value + i; with VKF_ADD, words[i] += addend + value
// shapes:   Words (N); Step is one word
// mapping:  an invocation owns one word, a workgroup kLocalSize consecutive ones
// bounds:   the last workgroup may be ragged
// requires: nothing (baseline); for tests of the recorder, no model uses it
// variants: fill_words__u32
//           fill_add__u32 DEFINES VKF_ADD=1
#include "constants.h"
layout(local_size_x = 64, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "fill.h"

layout(push_constant) uniform Params { FillParams p; };
#ifdef VKF_ADD
layout(binding = 0) buffer Words { uint words[]; };
layout(binding = 1) uniform Step { uint addend; };
#else
layout(binding = 0) writeonly buffer Words { uint words[]; };
#endif

void main() {
  const uint i = gl_WorkGroupID.x * kLocalSize + gl_LocalInvocationID.x;
  if (i >= p.count) return;
#ifdef VKF_ADD
  words[i] += addend + p.value;
#else
  words[i] = p.value + i;
#endif
}
