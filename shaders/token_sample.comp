#version 450
#extension GL_GOOGLE_include_directive : require
// computes: draws a token from the softmax of scores over temperature, cut down as settings say
// shapes:   Scores (slots, V), Logits (slots, V), Choice (params/sampling.h) -> Candidates (slots,
//           1, 2)
// mapping:  a dispatch a stage (params/sampling.h), one workgroup a slot and part of its row; an
//           invocation takes every kLocalSize-th token of the part, or a stretch of them
// bounds:   any V; slots beyond the live ones are skipped, and positions within the prompt
// requires: nothing (baseline)
// variants: token_sample_row__f32_u32_f32
//           token_sample_sums__f32_u32_f32 DEFINES VKF_FIRST_STAGE=1
// Probabilities are whole numbers, rounded shares of 2^31, so that sums are exact in any order.
// Which token a random number draws does not depend on how the work is shared out.
#include "sampling.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_TOKEN_SAMPLE_CONSTANTS)

#include "decode_state.h"
#include "float_bits.glsl"
#include "philox.glsl"
#include "reduce.glsl"
#include "row_best.glsl"

layout(push_constant) uniform Params { SampleParams p; };
layout(binding = 0) readonly buffer Scores { float scores[]; };
layout(binding = 1) readonly buffer Logits { float logits[]; };
// Four storage buffers at most: the first stage hands the settings on in `draws`.
#ifdef VKF_FIRST_STAGE
layout(binding = 2) readonly buffer Choice { uint choice[]; };
#else
// Where every score is given: (slots, V).
layout(binding = 2) writeonly buffer Candidates { uint candidates[]; };
#endif
layout(binding = 3) coherent buffer Draws { uint draws[]; };
layout(std140, binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 5) uniform Settings { SearchSettings s; };

shared uint known[VKF_DRAW_KNOWN];  // what earlier stages have found of this row

#ifndef VKF_FIRST_STAGE
#define VKF_CHOICE known
#endif
#include "choice.glsl"
#include "log_sum.glsl"
#include "lane_pairs.glsl"
#include "sample_row.glsl"

const uint kBinsOfRun = 16u;

shared uint bins[VKF_DRAW_DIGITS];
shared uint runs[kBinsOfRun];  // sums of 16 bins each
shared uint lane_sums[128];
shared uint counted;         // over all parts
shared uint counted_before;  // over the parts before this one

// The sums of the logits and of the scores in this part, as part_sum_of has them.
void sum_part() {
  vec2 peak = vec2(negative_infinity());
  for (uint v = first + gl_LocalInvocationID.x; v < first + count; v += kLocalSize) {
    peak = larger(peak, vec2(logits[base + v], logit_of(v)));
  }
  peak = pair_max(peak);
  barrier();
  for (uint lane = gl_LocalInvocationID.x; lane < kSumLanes; lane += kLocalSize) {
    vec2 sum = vec2(0.0);
    for (uint v = first + lane; v < first + count; v += kSumLanes) {
      sum += vec2(weight_over(logits[base + v], peak.x), weight_over(logit_of(v), peak.y));
    }
    lane_pairs[lane] = sum;
  }
  const vec2 sum = sum_of_pairs();
  uvec2 best = no_best();
  if (c.temperature == 0.0) {
    for (uint v = first + gl_LocalInvocationID.x; v < first + count; v += kLocalSize) {
      const uvec2 candidate = uvec2(order_key(logit_of(v)), v);
      if (is_better(candidate, best)) best = candidate;
    }
    best = workgroup_best(best);
  }
  if (gl_LocalInvocationID.x != 0u) return;
  const uint at = row_at + VKF_DRAW_PARTS + part * VKF_DRAW_PART_WORDS;
  draws[at + kLogPeak] = floatBitsToUint(peak.x);
  draws[at + kLog] = floatBitsToUint(sum.x);
  draws[at + kPeak] = floatBitsToUint(peak.y);
  draws[at + kTotal] = floatBitsToUint(sum.y);
  draws[at + kBestKey] = best.x;
  draws[at + kBestToken] = best.y;
}

uint part_word(uint of_part, uint word) {
  return draws[row_at + VKF_DRAW_PARTS + of_part * VKF_DRAW_PART_WORDS + word];
}

float part_float(uint of_part, uint word) { return uintBitsToFloat(part_word(of_part, word)); }

void collect_sums() {
  vec2 peak = vec2(part_float(0u, kLogPeak), part_float(0u, kPeak));
  vec2 sum = vec2(part_float(0u, kLog), part_float(0u, kTotal));
  uvec2 best = uvec2(part_word(0u, kBestKey), part_word(0u, kBestToken));
  if (parts != 1u) {
    for (uint i = gl_LocalInvocationID.x; i < parts; i += kLocalSize) {
      peak = larger(peak, vec2(part_float(i, kLogPeak), part_float(i, kPeak)));
      const uvec2 other = uvec2(part_word(i, kBestKey), part_word(i, kBestToken));
      if (is_better(other, best)) best = other;
    }
    peak = pair_max(peak);
    best = workgroup_best(best);
    barrier();
    for (uint lane = gl_LocalInvocationID.x; lane < kSumLanes; lane += kLocalSize) {
      sum = vec2(0.0);
      for (uint i = lane; i < parts; i += kSumLanes) {
        sum.x += rescaled(part_float(i, kLog), part_float(i, kLogPeak), peak.x);
        sum.y += rescaled(part_float(i, kTotal), part_float(i, kPeak), peak.y);
      }
      lane_pairs[lane] = sum;
    }
    sum = sum_of_pairs();
  }
  if (gl_LocalInvocationID.x == 0u) {
    const LogSum all = log_sum_from(peak.x, sum.x);
    remember(kLogPeak, floatBitsToUint(all.peak));
    remember(kLog, floatBitsToUint(all.log));
    remember(kPeak, floatBitsToUint(peak.y));
    remember(kTotal, floatBitsToUint(sum.y));
    remember(kBestKey, best.x);
    remember(kBestToken, best.y);
  }
  barrier();
}

// The search for the largest key whose tokens reach what the setting asks for, in mass or in
// number. The tokens are those of this key and of larger ones. It goes eight bits at a time, from
// the top. Here are the sums over one digit.
void count_digit(uint stage) {
  const bool by_distance = stage >= VKF_STAGE_TYPICAL;
  const bool by_mass = stage >= VKF_STAGE_TOP_P;
  const uint digit = (stage - 1u) & 3u;
  const uint shift = 24u - 8u * digit;
  const uint prefix = digit == 0u ? 0u : known[found_at(stage - 1u)];
  for (uint b = gl_LocalInvocationID.x; b < VKF_DRAW_DIGITS; b += kLocalSize) bins[b] = 0u;
  barrier();
  for (uint i = gl_LocalInvocationID.x; i < count; i += kLocalSize) {
    const float x = logit_of(first + i);
    if (!is_kept(first + i, x)) continue;
    const uint key = by_distance ? near_key_of(x) : order_key(x);
    if (digit != 0u && (key >> (shift + 8u)) != prefix) continue;
    atomicAdd(bins[(key >> shift) & 255u], by_mass ? mass_of(x) : 1u);
  }
  barrier();
  for (uint b = gl_LocalInvocationID.x; b < VKF_DRAW_DIGITS; b += kLocalSize) {
    if (bins[b] != 0u) atomicAdd(draws[bins_at(stage) + b], bins[b]);
  }
}

// Then the digit, and what is left to be reached by those of just the key so far.
void collect_digit(uint stage) {
  const uint lane = gl_LocalInvocationID.x;
  for (uint b = lane; b < VKF_DRAW_DIGITS; b += kLocalSize) bins[b] = draws[bins_at(stage) + b];
  barrier();
  [[dont_unroll]] for (uint i = lane; i < kBinsOfRun; i += kLocalSize) {
    uint sum = 0u;
    for (uint b = 0u; b < kBinsOfRun; ++b) sum += bins[i * kBinsOfRun + b];
    runs[i] = sum;
  }
  barrier();
  if (lane == 0u) {
    uint left, prefix = 0u;
    if (((stage - 1u) & 3u) != 0u) {
      prefix = known[found_at(stage - 1u)];
      left = known[found_at(stage - 1u) + 1u];
    } else if (stage < VKF_STAGE_TOP_P) {
      left = c.top_k;
    } else {
      uint mass = 0u;
      for (uint i = 0u; i < kBinsOfRun; ++i) mass += runs[i];
      const float share = stage < VKF_STAGE_TYPICAL ? c.top_p : c.typical_p;
      left = clamp(uint(ceil(share * float(mass))), 1u, mass);
    }
    // What is asked for may be more than there is, by rounding: then all of it.
    uint run = kBinsOfRun - 1u;
    while (run > 0u && runs[run] < left) {
      left -= runs[run];
      --run;
    }
    uint bin = run * kBinsOfRun + kBinsOfRun - 1u;
    while (bin > run * kBinsOfRun && bins[bin] < left) {
      left -= bins[bin];
      --bin;
    }
    remember(found_at(stage), (prefix << 8u) | bin);
    remember(found_at(stage) + 1u, left);
  }
  barrier();
}

// What a token counts: one of the key that top-p ends with, or its mass.
uint counts(uint v, bool ties) {
  const float x = logit_of(v);
  if (ties) return order_key(x) == known[found_at(VKF_STAGE_TIES - 1u)] ? 1u : 0u;
  return is_kept(v, x) ? mass_of(x) : 0u;
}

void count_part(uint stage) {
  const uint lane = gl_LocalInvocationID.x;
  uint sum = 0u;
  for (uint i = lane; i < count; i += kLocalSize) sum += counts(first + i, stage == VKF_STAGE_TIES);
  barrier();
  if (lane == 0u) counted = 0u;
  barrier();
  atomicAdd(counted, sum);
  barrier();
  if (lane == 0u) draws[part_at(part, stage)] = counted;
}

// Into `counted` what all parts have, into `counted_before` what those before this one have.
void collect_counts(uint stage) {
  const uint lane = gl_LocalInvocationID.x;
  if (lane == 0u) {
    counted = 0u;
    counted_before = 0u;
  }
  barrier();
  uint sum = 0u, before = 0u;
  for (uint i = lane; i < parts; i += kLocalSize) {
    const uint value = draws[part_at(i, stage)];
    sum += value;
    if (i < part) before += value;
  }
  atomicAdd(counted, sum);
  atomicAdd(counted_before, before);
  barrier();
}

#ifndef VKF_FIRST_STAGE
void give(uint token) {
  const LogSum log_sum = LogSum(known_float(kLogPeak), known_float(kLog));
  float value =
      token == VKF_NO_TOKEN ? negative_infinity() : log_probability(log_sum, logits[base + token]);
  if (is_nan(log_sum.log)) value = log_sum.log;
  candidates[2u * gl_WorkGroupID.x] = floatBitsToUint(value);
  candidates[2u * gl_WorkGroupID.x + 1u] = token;
}

void take(uint token, bool ties) {
  if (ties) {
    known[found_at(VKF_STAGE_LAST_TIE)] = token;
    draws[row_at + found_at(VKF_STAGE_LAST_TIE)] = token;
  } else {
    give(token);
  }
}

// The token at which the count over tokens in ascending order exceeds a place. The mass says how
// many of the ties, the random number how much of the mass. One part has it, or none.
void find_token(uint stage, uint turn) {
  const uint lane = gl_LocalInvocationID.x;
  const bool ties = stage == VKF_STAGE_LAST_TIE;
  uint place, unused;
  if (ties) {
    const uint left = known[found_at(VKF_STAGE_TIES - 1u) + 1u];
    // All of a key have one mass; the share is rounded up.
    const uint each = mass_of(key_score(known[found_at(VKF_STAGE_TIES - 1u)]));
    place = each == 0u ? 0u : (left + each - 1u) / each - 1u;
  } else {
    const uvec4 number = philox(uvec2(c.seed_low, c.seed_high), uvec4(turn, c.stream, 0u, 0u));
    umulExtended(number.x, counted, place, unused);
  }
  if (place >= counted) {
    if (part == 0u && lane == 0u) take(VKF_NO_TOKEN, ties);
    return;
  }
  if (place < counted_before || place - counted_before >= draws[part_at(part, stage - 1u)]) return;
  place -= counted_before;
  const uint stretch = (count + kLocalSize - 1u) / kLocalSize;
  const uint end = min(count, (lane + 1u) * stretch);
  // First over all of a stretch, and then up to the place, so that `counts` is compiled once.
  uint sum = 0u, until = VKF_NO_TOKEN;
  [[dont_unroll]] for (uint pass = 0u; pass < 2u; ++pass) {
    [[dont_unroll]] for (uint i = lane * stretch; i < end && sum <= until; ++i) {
      sum += counts(first + i, ties);
      if (sum > until) take(first + i, ties);
    }
    if (pass != 0u) break;
    lane_sums[lane] = sum;
    barrier();
    uint before = 0u;
    [[dont_unroll]] for (uint i = 0u; i < lane; ++i) before += lane_sums[i];
    if (before > place || place - before >= sum) return;
    sum = before;
    until = place;
  }
}

// Locally typical sampling (Meister et al. 2023) keeps the tokens whose surprise is nearest to the
// entropy: the part's share of the mass, then of the entropy.
void sum_kept(uint stage) {
  barrier();
  for (uint lane = gl_LocalInvocationID.x; lane < kSumLanes; lane += kLocalSize) {
    float sum = 0.0;
    for (uint i = lane; i < count; i += kSumLanes) {
      const float x = logit_of(first + i);
      if (!is_kept(first + i, x)) continue;
      if (stage == VKF_STAGE_LEFT) {
        sum += weight_over(x, r.peak);
      } else {
        const float log_share = x - r.peak - r.log_kept;
        sum -= exp_nonpositive(min(log_share, 0.0)) * log_share;
      }
    }
    reduce_scratch[lane] = sum;
  }
  const float sum = sum_of_lanes();
  if (gl_LocalInvocationID.x == 0u) draws[part_at(part, stage)] = floatBitsToUint(sum);
}

void collect_kept(uint stage) {
  barrier();
  for (uint lane = gl_LocalInvocationID.x; lane < kSumLanes; lane += kLocalSize) {
    float sum = 0.0;
    for (uint i = lane; i < parts; i += kSumLanes) sum += uintBitsToFloat(draws[part_at(i, stage)]);
    reduce_scratch[lane] = sum;
  }
  const float sum = sum_of_lanes();
  if (gl_LocalInvocationID.x == 0u) {
    remember(found_at(stage), floatBitsToUint(stage == VKF_STAGE_LEFT ? log(sum) : sum));
  }
  barrier();
}

// What is left keeps its score over the temperature.
void give_scores() {
  const float log_value = known_float(kLog);
  for (uint i = gl_LocalInvocationID.x; i < count; i += kLocalSize) {
    const float x = logit_of(first + i);
    const float left = can_draw() && is_kept(first + i, x) ? x : negative_infinity();
    candidates[base + first + i] = floatBitsToUint(is_nan(log_value) ? log_value : left);
  }
}

// Puts together what the parts have left in the stage before.
void collect() {
  if (kBefore == VKF_SAMPLE_SUMS) collect_sums();
  if (kBefore == VKF_SAMPLE_SUMS || !applies(p.before)) return;
  if (kBefore == VKF_SAMPLE_DIGIT) collect_digit(p.before);
  if (kBefore == VKF_SAMPLE_COUNT) collect_counts(p.before);
  if (kBefore == VKF_SAMPLE_WEIGHT) collect_kept(p.before);
}
#endif

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  part = gl_WorkGroupID.y;
  parts = VKF_VOCAB_PARTS(p.search.vocab);
  base = slot * p.search.vocab;
  first = part * VKF_VOCAB_PART;
  count = min(p.search.vocab - first, VKF_VOCAB_PART);
  row_at = slot * (VKF_DRAW_PARTS + parts * VKF_DRAW_PART_WORDS);
#ifdef VKF_FIRST_STAGE
  const uint row = VKF_SLOT_ROW(slot_rows[slot >> 2u][slot & 3u]);
  for (uint i = lane; i < VKF_CHOICE_WORDS && part == 0u; i += kLocalSize) {
    draws[row_at + VKF_DRAW_SETTINGS + i] = choice[row * VKF_CHOICE_WORDS + i];
  }
  c = choice_row(row);
#else
  // Words that no stage has written are of no meaning, and not used.
  for (uint i = lane; i < VKF_DRAW_KNOWN; i += kLocalSize) known[i] = draws[row_at + i];
  barrier();
  c = choice_row_at(VKF_DRAW_SETTINGS);
#endif
  const uint length = state.position + 1u, prompt = prompt_end(c, length);
  if (length < prompt) return;  // the prompt says what comes next
  // Empty histograms for the next stage.
  if (part == 0u && is_digit(p.after)) {
    for (uint b = lane; b < VKF_DRAW_DIGITS; b += kLocalSize) draws[bins_at(p.after) + b] = 0u;
  }
#ifdef VKF_FIRST_STAGE
  r.scale = c.temperature > 0.0 ? 1.0 / c.temperature : 1.0;
  sum_part();
#else
  collect();
  if (!applies(p.stage)) return;
  read_row(p.stage);
  if (kDoes == VKF_SAMPLE_DIGIT) count_digit(p.stage);
  if (kDoes == VKF_SAMPLE_WEIGHT) sum_kept(p.stage);
  if (kDoes == VKF_SAMPLE_GIVE) give_scores();
  if (kDoes == VKF_SAMPLE_COUNT && can_draw()) count_part(p.stage);
  if (kDoes == VKF_SAMPLE_FIND) {
    if (can_draw()) {
      find_token(p.stage, length - prompt);
    } else if (part == 0u && lane == 0u) {
      give(VKF_NO_TOKEN);
    }
  }
#endif
}
