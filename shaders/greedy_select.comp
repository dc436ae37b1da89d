#version 450
#extension GL_GOOGLE_include_directive : require
// computes: appends each row's best token; ends rows at an end token or the last position
// shapes:   Candidates (slots, 1, 2) -> Search (params/search.h), B = R rows, n = 1
// mapping:  one invocation a slot
// bounds:   slots beyond the live ones are skipped, and positions within the prompt
// requires: nothing (baseline)
// variants: greedy_select_slot__u32
layout(local_size_x = 32) in;

#include "decode_state.h"
#include "float_bits.glsl"
#include "search.h"
#include "search_layout.glsl"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Candidates { uint candidates[]; };
layout(binding = 1) buffer Search { uint search[]; };
layout(std140, binding = 2) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 3) uniform Settings { SearchSettings s; };

void main() {
  const uint slot = gl_GlobalInvocationID.x;
  if (slot >= state.live_slots) return;
  const uint row = VKF_SLOT_ROW(slot_rows[slot >> 2u][slot & 3u]);
  const uint length = state.position + 1u;
  if (length < s.prompt_length) return;  // the prompt says what comes next
  const float score = uintBitsToFloat(candidates[slot * 2u]);
  const uint token = candidates[slot * 2u + 1u];
  const uint item = items_at(p, row);
  if (is_nan(score) || token == VKF_NO_TOKEN) {
    search[item + VKF_ITEM_STATUS] = is_nan(score) ? VKF_STATUS_NAN : VKF_STATUS_NO_TOKEN;
    search[item + VKF_ITEM_LENGTH] = length;
    search[item + VKF_ITEM_ACTIVE] = 0u;
    return;
  }
  search[tokens_at(p, row) + length] = token;
  search[sequence_at(p, row, 0u) + length] = floatBitsToUint(score);
  const uint total = scores_at(p, row);
  search[total] = floatBitsToUint(uintBitsToFloat(search[total]) + score);
  bool ended = length + 1u >= s.max_length;
  for (uint e = 0u; e < s.eos_count; ++e) ended = ended || s.eos[e >> 2u][e & 3u] == token;
  if (ended) {
    search[item + VKF_ITEM_LENGTH] = length + 1u;
    search[item + VKF_ITEM_ACTIVE] = 0u;
  }
}
