#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// computes: one step of beam search per batch item, as Hugging Face's generate does it
// shapes:   Candidates (slots, K, 2) -> Search (params/search.h), Ancestry (R, C)
// mapping:  one workgroup a live item; all invocations search and copy, one decides
// bounds:   at most VKF_MAX_BEAMS beams, VKF_MAX_CANDIDATES candidates; positions within the prompt
//           are skipped
// requires: nothing (baseline)
// variants: beam_select_item__u32
#include "search.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_BEAM_SELECT_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "philox.glsl"
#include "row_best.glsl"
#include "sampling.h"
#include "search_layout.glsl"

layout(push_constant) uniform Params { SearchParams p; };
layout(binding = 0) readonly buffer Candidates { uint candidates[]; };
layout(binding = 1) buffer Search { uint search[]; };
layout(binding = 2) buffer Ancestry { uint ancestry[]; };
layout(binding = 3) readonly buffer Choice { uint choice[]; };  // of a draw; else anything
layout(std140, binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 5) uniform Settings { SearchSettings s; };

#include "choice.glsl"
#include "gumbel.glsl"

const uint kNoPlace = 0xffffffffu;
const float kFinishedPenalty = 1e9;  // keeps ended candidates out of the running beams

// All loops stay loops ([[dont_unroll]]). Compilers take the sizes of the shared arrays for bounds.
// Unrolled 16 rounds of each make three times the instructions.
const uint kEnded = 1u, kTaken = 2u;  // what a candidate may be

shared float top_score[VKF_MAX_CANDIDATES];
shared uint top_parent[VKF_MAX_CANDIDATES];  // beam
shared uint top_token[VKF_MAX_CANDIDATES];
shared uint top_state[VKF_MAX_CANDIDATES];  // kEnded, kTaken
// Of every invocation, its tokens of all beams: a private array that is indexed at run time would
// be in memory.
shared uint column[VKF_MAX_BEAMS * kLocalSize];
shared uint kept[VKF_MAX_BEAMS];          // candidates that run on
shared uint from_at[VKF_MAX_BEAMS];       // where the histories that they go on with begin
shared uint finish_place[VKF_MAX_BEAMS];  // where candidate i goes as a hypothesis, or kNoPlace
shared uint nan_seen;

bool is_end_token(uint token) {
  [[dont_unroll]] for (uint e = 0u; e < s.eos_count; ++e) {
    if (s.eos[e >> 2u][e & 3u] == token) return true;
  }
  return false;
}

float length_divisor(uint generated) { return pow(float(generated), s.length_penalty); }

// Beams of the groups before this one that have chosen the token at this position (Vijayakumar et
// al. 2018). Groups that ended earlier choose no more.
float chosen_before(uint item, uint token, uint length) {
  float count = 0.0;
  [[dont_unroll]] for (uint g = item - kGroup; g < item; ++g) {
    const uint at = items_at(p, g);
    if (search[at + VKF_ITEM_ACTIVE] == 0u && search[at + VKF_ITEM_LENGTH] != length + 1u) continue;
    [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
      if (search[tokens_at(p, g * p.beams + j) + length] == token) count += 1.0;
    }
  }
  return count;
}

float candidate_score(uint first_slot, uint first_row, uint c, uint length) {
  const uint beam = c / p.candidates;
  const uint at = ((first_slot + beam) * p.candidates + c % p.candidates) * 2u;
  const float score =
      uintBitsToFloat(search[scores_at(p, first_row + beam)]) + uintBitsToFloat(candidates[at]);
  if (kGroup == 0u) return score;
  return score - s.diversity * chosen_before(first_row / p.beams, candidates[at + 1u], length);
}

// What a candidate is ranked by.
float candidate_rank(uint first_slot, uint first_row, uint c, uint length) {
  const float score = candidate_score(first_slot, first_row, c, length);
  if (kSampled == 0u) return score;
  const uint beam = c / p.candidates;
  const uint at = ((first_slot + beam) * p.candidates + c % p.candidates) * 2u;
  const ChoiceRow settings = choice_row(first_row + beam);
  return score + gumbel(settings, length - s.prompt_length, candidates[at + 1u]);
}

// The K best of the n * K candidates of this item, best first, into top_*. Ties go to the smaller
// beam, then the smaller token: a row's candidates are in that order.
void pick_candidates(uint first_slot, uint first_row, uint length) {
  uvec2 last = no_best();
  [[dont_unroll]] for (uint k = 0u; k < kPicks; ++k) {
    uvec2 best = no_best();
    [[dont_unroll]] for (uint c = gl_LocalInvocationID.x; c < p.beams * p.candidates;
                         c += kLocalSize) {
      const float score = candidate_rank(first_slot, first_row, c, length);
      if (is_nan(score)) atomicOr(nan_seen, 1u);
      const uvec2 candidate = uvec2(order_key(score), c);
      const bool after = k == 0u || is_better(last, candidate);
      if (after && is_better(candidate, best)) best = candidate;
    }
    last = workgroup_best(best);
    if (gl_LocalInvocationID.x == 0u) {
      const uint c = last.y;
      const uint beam = c / p.candidates;
      const uint token =
          candidates[((first_slot + beam) * p.candidates + c % p.candidates) * 2u + 1u];
      top_score[k] = candidate_score(first_slot, first_row, c, length);
      top_parent[k] = beam;
      top_token[k] = token;
      top_state[k] = is_end_token(token) || length + 1u >= s.max_length ? kEnded : 0u;
    }
  }
}

// The n candidates that run on: unended ones first, each group best first (a stable selection of
// score - 1e9 for ended ones). Those that were sampled are in the order of the sampling. Returns
// whether all candidates have ended.
bool keep_running(uint first_row) {
  bool all_ended = false;
  uint wanted = 0u;
  [[dont_unroll]] for (uint taken = 0u; taken < p.beams;) {
    uint best = kPicks;
    [[dont_unroll]] for (uint k = 0u; k < kPicks; ++k) {
      if (top_state[k] != wanted) continue;
      if (best == kPicks || top_score[k] > top_score[best]) best = k;
    }
    if (best == kPicks) {
      if (wanted == kEnded) break;
      wanted = kEnded;
      all_ended = taken == 0u;
      continue;
    }
    top_state[best] |= kTaken;
    from_at[taken] = tokens_at(p, first_row + top_parent[best]);
    kept[taken] = best;
    ++taken;
  }
  return all_ended;
}

// Admits ended candidates among the first n to the finished hypotheses; the worst one gives way.
void admit_finished(uint item, uint generated) {
  const uint item_at = items_at(p, item);
  uint count = search[item_at + VKF_ITEM_FINISHED];
  const bool closed = search[item_at + VKF_ITEM_ACTIVE] == 0u ||
                      (s.early_stopping == VKF_EARLY_STOPPING_YES && count >= p.beams);
  [[dont_unroll]] for (uint k = 0u; k < p.beams; ++k) {
    finish_place[k] = kNoPlace;
    if (closed || (top_state[k] & kEnded) == 0u) continue;
    const float score = top_score[k] / length_divisor(generated);
    uint place = count;
    if (count == p.beams) {
      place = 0u;
      [[dont_unroll]] for (uint i = 1u; i < count; ++i) {
        if (uintBitsToFloat(search[finished_at(p, item, i)]) <
            uintBitsToFloat(search[finished_at(p, item, place)])) {
          place = i;
        }
      }
      if (!(score > uintBitsToFloat(search[finished_at(p, item, place)]))) continue;
      [[dont_unroll]] for (uint i = 0u; i < k; ++i) {
        if (finish_place[i] == place) finish_place[i] = kNoPlace;
      }
    } else {
      ++count;
    }
    finish_place[k] = place;
    search[finished_at(p, item, place)] = floatBitsToUint(score);
    search[finished_at(p, item, place) + 1u] = state.position + 2u;
  }
  search[item_at + VKF_ITEM_FINISHED] = count;
}

// Whether this item goes on; `best_running` is the score of its best running beam.
bool goes_on(uint item, uint new_length, float best_running, bool all_done) {
  const uint count = search[items_at(p, item) + VKF_ITEM_FINISHED];
  if (all_done) return false;
  if (count < p.beams) return true;
  if (s.early_stopping == VKF_EARLY_STOPPING_YES) return false;
  float worst = uintBitsToFloat(search[finished_at(p, item, 0u)]);
  [[dont_unroll]] for (uint i = 1u; i < count; ++i) {
    worst = min(worst, uintBitsToFloat(search[finished_at(p, item, i)]));
  }
  const bool longest = s.early_stopping == VKF_EARLY_STOPPING_NEVER && s.length_penalty > 0.0;
  const uint generated = (longest ? s.max_length : new_length) - s.prompt_length;
  return best_running / length_divisor(generated) > worst;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint first_slot = gl_WorkGroupID.x * p.beams;
  if (first_slot >= state.live_slots) return;
  const uint entry = slot_rows[first_slot >> 2u][first_slot & 3u];
  const uint first_row = VKF_SLOT_ROW(entry);
  const uint start = VKF_SLOT_START(entry);  // ancestry counts from here
  const uint item = first_row / p.beams;
  if (item % kGroups != kGroup) return;
  const uint length = state.position + 1u;
  if (length < s.prompt_length) return;  // the prompt says what comes next, and beams are alike
  if (lane == 0u) nan_seen = 0u;
  barrier();
  pick_candidates(first_slot, first_row, length);
  barrier();
  if (nan_seen != 0u) {
    if (lane == 0u) {
      search[items_at(p, item) + VKF_ITEM_STATUS] = VKF_STATUS_NAN;
      search[items_at(p, item) + VKF_ITEM_LENGTH] = length;
      search[items_at(p, item) + VKF_ITEM_ACTIVE] = 0u;
    }
    return;
  }
  bool all_done = false;  // of lane 0
  if (lane == 0u) {
    all_done = keep_running(first_row);
    admit_finished(item, length + 1u - s.prompt_length);
  }
  barrier();
  [[dont_unroll]] for (uint k = 0u; k < p.beams; ++k) {
    if (finish_place[k] == kNoPlace) continue;
    const uint from = tokens_at(p, first_row + top_parent[k]);
    const uint to = sequence_at(p, item, finish_place[k]);
    [[dont_unroll]] for (uint t = lane; t < length; t += kLocalSize) {
      search[to + t] = search[from + t];
    }
    if (lane == 0u) search[to + length] = top_token[k];
  }
  barrier();
  // Reorder histories: a column is one invocation's, so reading all before writing any is safe.
  const uint own_at = tokens_at(p, first_row);
  [[dont_unroll]] for (uint t = lane; t < length; t += kLocalSize) {
    [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
      column[j * kLocalSize + lane] = search[from_at[j] + t];
    }
    [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
      search[own_at + j * p.capacity + t] = column[j * kLocalSize + lane];
    }
    if (t < start) continue;
    [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
      column[j * kLocalSize + lane] = ancestry[from_at[j] + t - start];
    }
    [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
      ancestry[own_at + j * p.capacity + t - start] = column[j * kLocalSize + lane];
    }
  }
  if (lane != 0u) return;
  [[dont_unroll]] for (uint j = 0u; j < p.beams; ++j) {
    const uint row = first_row + j;
    const float penalty = (top_state[kept[j]] & kEnded) != 0u ? kFinishedPenalty : 0.0;
    search[scores_at(p, row)] = floatBitsToUint(top_score[kept[j]] - penalty);
    search[tokens_at(p, row) + length] = top_token[kept[j]];
    if (length < p.capacity) ancestry[row * p.capacity + length - start] = row;
  }
  const float best_running = uintBitsToFloat(search[scores_at(p, first_row)]);
  if (!goes_on(item, length + 1u, best_running, all_done)) {
    search[items_at(p, item) + VKF_ITEM_ACTIVE] = 0u;
    search[items_at(p, item) + VKF_ITEM_LENGTH] = length + 1u;
  }
}
