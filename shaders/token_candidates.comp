#version 450
#extension GL_GOOGLE_include_directive : require
// computes: log-probabilities of the next token, score processing, and the K best of a slot
// shapes:   Logits (slots, V), Suppress (2, ceil(V/32)), Choice (params/sampling.h) -> Candidates
//           (slots, K, 2): f32 bits, token
// mapping:  one workgroup a slot, of a row of several parts one a part and then one for their best;
//           an invocation takes every kLocalSize-th token and keeps its best
// bounds:   any V; places beyond it hold token 0 at -inf; slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: token_candidates_row__f32_u32_f32
//           token_candidates_row__f32_u32_f32_subgroup FEATURES subgroup
#include "search.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_TOKEN_CANDIDATES_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "reduce.glsl"
#include "row_best.glsl"
#include "philox.glsl"
#include "sampling.h"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) readonly buffer Suppress { uint suppress[]; };
// Of a draw; of VKF_BEST_OF_PARTS the keys and tokens (slots, P, K, 2) of the parts. Of
// VKF_BEST_OF_PART, where it normalizes, what log_sum_parts found (slots, P, 2). Else anything.
layout(binding = 2) readonly buffer Choice { uint choice[]; };
layout(binding = 3) writeonly buffer Candidates { uint candidates[]; };  // or those of the parts
layout(std140, binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 5) uniform Settings { SearchSettings s; };

#include "choice.glsl"
#include "log_sum.glsl"
#include "gumbel.glsl"

bool is_end_token(uint token) {
  for (uint e = 0u; e < s.eos_count; ++e) {
    if (s.eos[e >> 2u][e & 3u] == token) return true;
  }
  return false;
}

// The processed value of a token, in the order of Hugging Face's processors. Suppressed tokens and
// premature end tokens are impossible. A forced token is certain.
float processed(uint token, uint length, float value) {
  if (length + 1u == s.max_length && s.forced_last != VKF_NO_TOKEN) {
    return token == s.forced_last ? 0.0 : negative_infinity();
  }
  if (length == s.prompt_length && s.forced_first != VKF_NO_TOKEN) {
    return token == s.forced_first ? 0.0 : negative_infinity();
  }
  const uint words = (p.vocab + 31u) >> 5u;
  uint forbidden = suppress[token >> 5u];
  if (length == s.prompt_length) forbidden |= suppress[words + (token >> 5u)];
  if ((forbidden & (1u << (token & 31u))) != 0u) return negative_infinity();
  if (length < s.min_length && is_end_token(token)) return negative_infinity();
  return value;
}

uint base, length;
uint first;      // token of this workgroup's part
uint best_base;  // of the row's candidates among those of the parts
LogSum log_sum;
ChoiceRow choice_of_row;

uint sums_base;  // of the row's parts
vec2 part_sum(uint part) {
  const uint at = sums_base + 2u * part;
  return vec2(uintBitsToFloat(choice[at]), uintBitsToFloat(choice[at + 1u]));
}
#include "log_sum_of_parts.glsl"

float scored(uint token) {
  return processed(token, length, log_probability(log_sum, logits[base + token]));
}

uvec2 candidate_at(uint i) {
  if (kBestOf == VKF_BEST_OF_PARTS) {
    const uint at = 2u * (best_base + i);
    return uvec2(choice[at], choice[at + 1u]);
  }
  const uint token = first + i;
  float value = scored(token);
  if (kSampled != 0u && length >= s.prompt_length) {
    value += gumbel(choice_of_row, length - s.prompt_length, token);
  }
  return uvec2(order_key(value), token);
}
#include "row_kept.glsl"

// NaN where one of the row's values is, which log-probabilities say by themselves.
float nan_among(uint count) {
  float nan = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < count; i += kLocalSize) {
    if (is_nan(logits[base + i])) nan = logits[base + i];
  }
  return workgroup_sum(nan);
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  const uint lane = gl_LocalInvocationID.x;
  if (slot >= state.live_slots) return;
  base = slot * p.vocab;
  length = state.position + 1u;
  const uint parts = (p.vocab + VKF_VOCAB_PART - 1u) / VKF_VOCAB_PART;
  first = kBestOf == VKF_BEST_OF_PART ? gl_WorkGroupID.y * VKF_VOCAB_PART : 0u;
  best_base = slot * parts * p.candidates;
  uint count = p.vocab;
  if (kBestOf == VKF_BEST_OF_PART) count = min(p.vocab - first, VKF_VOCAB_PART);
  if (kBestOf == VKF_BEST_OF_PARTS) count = parts * p.candidates;

  log_sum = LogSum(0.0, 0.0);
  if (kNormalize != 0u && kBestOf == VKF_BEST_OF_PART) {
    sums_base = 2u * slot * parts;
    log_sum = log_sum_of_parts(parts);
  } else if (kNormalize != 0u) {
    log_sum = log_sum_of(base, p.vocab);
  } else if (kBestOf == VKF_BEST_OF_ROW) {
    log_sum.log = nan_among(p.vocab);
  }

  if (kSampled != 0u && kBestOf != VKF_BEST_OF_PARTS)
    choice_of_row = choice_row(VKF_SLOT_ROW(slot_rows[slot >> 2u][slot & 3u]));
  keep_best(false, no_best(), count);
  for (uint k = 0u; k < p.candidates; ++k) {
    const uvec2 best = next_best(count);
    if (kBestOf == VKF_BEST_OF_PART) {
      const uint at = 2u * (best_base + gl_WorkGroupID.y * p.candidates + k);
      if (lane == 0u) candidates[at] = best.x;
      if (lane == 0u) candidates[at + 1u] = best.y;
      continue;
    }
    // The key of a NaN is above all others.
    if (kBestOf == VKF_BEST_OF_PARTS && k == 0u && best.x == order_key(make_nan()))
      log_sum.log = make_nan();
    if (lane == 0u) {
      // A NaN anywhere makes the sum NaN: report it as the score, so that the search stops there.
      const bool found = k < p.vocab;
      const uint token = found ? best.y : 0u;
      float value = negative_infinity();
      // The key of a draw has noise.
      if (found)
        value =
            kBestOf == VKF_BEST_OF_PARTS && kSampled == 0u ? value_of_key(best.x) : scored(token);
      const uint at = (slot * p.candidates + k) * 2u;
      candidates[at] = floatBitsToUint(is_nan(log_sum.log) ? log_sum.log : value);
      candidates[at + 1u] = token;
    }
  }
}
