#version 450
#extension GL_GOOGLE_include_directive : require
// computes: what the next token's logits are worth after penalties, rules, masks and forced tokens
// shapes:   Logits (slots, V), Search (params/search.h), Choice (params/sampling.h) -> Scores
//           (slots, V)
// mapping:  one workgroup a slot and part of its row; an invocation takes every kLocalSize-th token
//           of the part, then history entry
// bounds:   any V and history; slots beyond the live ones are skipped, and positions within the
//           prompt
// requires: nothing (baseline)
// variants: token_scores_row__f32_u32_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "reduce.glsl"
#include "sampling.h"
#include "search_layout.glsl"

layout(push_constant) uniform Params { ScoresParams p; };
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) readonly buffer Search { uint search[]; };
layout(binding = 2) readonly buffer Choice { uint choice[]; };
// Marks while the history is read, then scores.
layout(binding = 3) coherent buffer Scores { uint scores[]; };
layout(std140, binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 5) uniform Settings { SearchSettings s; };

#include "choice.glsl"
#include "log_sum.glsl"

const uint kGenerated = 0x3fffffffu;  // bits of a mark: times it was generated
const uint kInPrompt = 0x40000000u;
const uint kBanned = 0x80000000u;

bool is_end_token(uint token) {
  for (uint e = 0u; e < s.eos_count; ++e) {
    if (s.eos[e >> 2u][e & 3u] == token) return true;
  }
  return false;
}

// The tokens of this workgroup's part.
uint part_first, part_end;

bool is_in_part(uint token) { return token >= part_first && token < part_end; }

// Where the tokens of `first` ... `last` - 1 came before, marks what followed them there.
void ban_repeats(uint marks, uint history, uint first, uint last, uint n) {
  const uint before = n - 1u;
  if (last - first < n) return;
  for (uint t = first + gl_LocalInvocationID.x; t + before < last; t += kLocalSize) {
    bool same = is_in_part(search[history + t + before]);
    for (uint i = 0u; i < before && same; ++i) {
      same = search[history + t + i] == search[history + last - before + i];
    }
    if (same) atomicOr(scores[marks + search[history + t + before]], kBanned);
  }
}

// What the rules of a list add to a token's score.
float rule_sum(uint list, uint token, uint history, uint first, uint last) {
  uint low = 0u;
  uint high = choice[list];
  while (low < high) {
    const uint middle = (low + high) >> 1u;
    if (choice[list + 1u + 3u * middle] < token) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  const uint entry = list + 1u + 3u * low;
  if (low >= choice[list] || choice[entry] != token) return 0.0;
  uint rule = list + choice[entry + 1u];
  float sum = 0.0;
  for (uint r = 0u; r < choice[entry + 2u]; ++r) {
    const uint n = choice[rule + 1u];
    bool holds = last - first >= n;
    for (uint i = 0u; i < n && holds; ++i) {
      holds = search[history + last - n + i] == choice[rule + 2u + i];
    }
    if (holds) sum += uintBitsToFloat(choice[rule]);
    rule += 2u + n;
  }
  return sum;
}

// Penalties on a token that was seen: Keskar et al. 2019 (CTRL) divide; presence and frequency as
// OpenAI's API defines them, over what was generated.
float penalised(ChoiceRow c, float score, uint mark) {
  if ((mark & ~kBanned) != 0u) score = score < 0.0 ? score * c.repetition : score / c.repetition;
  const uint times = mark & kGenerated;
  if (times != 0u) score -= c.presence + c.frequency * float(times);
  return score;
}

// Suppressed, premature and forbidden tokens are impossible; a forced one is certain.
float permitted(ChoiceRow c, uint row, uint token, uint length, uint prompt, float score) {
  if (length + 1u == s.max_length && s.forced_last != VKF_NO_TOKEN) {
    return token == s.forced_last ? 0.0 : negative_infinity();
  }
  if (length == prompt && s.forced_first != VKF_NO_TOKEN) {
    return token == s.forced_first ? 0.0 : negative_infinity();
  }
  const uint words = (p.search.vocab + 31u) >> 5u;
  const uint suppress = p.search.batch * p.search.beams * VKF_CHOICE_WORDS;
  uint forbidden = choice[suppress + (token >> 5u)];
  if (length == prompt) forbidden |= choice[suppress + words + (token >> 5u)];
  if (c.masked != 0u) forbidden |= ~choice[suppress + (2u + row) * words + (token >> 5u)];
  if ((forbidden & (1u << (token & 31u))) != 0u) return negative_infinity();
  if (length < s.min_length && is_end_token(token)) return negative_infinity();
  return score;
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  const uint lane = gl_LocalInvocationID.x;
  if (slot >= state.live_slots) return;
  const uint length = state.position + 1u;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  const ChoiceRow c = choice_row(row);
  const uint prompt = prompt_end(c, length);
  if (length < prompt) return;  // the prompt says what comes next
  const uint first = VKF_SLOT_START(entry);
  const uint history = tokens_at(p.search, row);
  const uint base = slot * p.search.vocab;
  part_first = gl_WorkGroupID.y * VKF_VOCAB_PART;
  part_end = min(p.search.vocab, part_first + VKF_VOCAB_PART);

  for (uint v = part_first + lane; v < part_end; v += kLocalSize) scores[base + v] = 0u;
  memoryBarrierBuffer();
  barrier();
  for (uint t = first + lane; t < length; t += kLocalSize) {
    const uint token = search[history + t];
    if (!is_in_part(token)) continue;
    const uint mark = base + token;
    if (t < prompt) {
      atomicOr(scores[mark], kInPrompt);
    } else {
      atomicAdd(scores[mark], 1u);
    }
  }
  if (c.no_repeat != 0u) ban_repeats(base, history, first, length, c.no_repeat);
  LogSum log_sum = LogSum(0.0, 0.0);
  if (p.normalize != 0u) log_sum = log_sum_of(base, p.search.vocab);  // of a row of one part
  memoryBarrierBuffer();
  barrier();
  for (uint v = part_first + lane; v < part_end; v += kLocalSize) {
    const uint mark = scores[base + v];
    float score = log_probability(log_sum, logits[base + v]);
    if (c.rules != 0u) score += rule_sum(c.rules, v, history, first, length);
    score = penalised(c, score, mark);
    if ((mark & kBanned) != 0u) score = negative_infinity();
    scores[base + v] = floatBitsToUint(permitted(c, row, v, length, prompt, score));
  }
}
