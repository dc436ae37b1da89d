#version 450
#extension GL_GOOGLE_include_directive : require
// computes: draws a token from the softmax of scores over temperature, cut down as settings say
// shapes:   Scores (slots, V), Logits (slots, V), Choice (params/sampling.h) -> Candidates (slots, 1, 2)
// mapping:  one workgroup a slot; an invocation takes every kLocalSize-th token, or a stretch of them
// bounds:   any V; slots beyond the live ones are skipped, and positions within the prompt
// requires: nothing (baseline)
// variants: token_sample_row__f32_u32_f32
// Probabilities are whole numbers, rounded shares of 2^31, so that sums are exact in any order: which
// token a random number draws does not depend on how the work is shared out.
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
layout(binding = 2) readonly buffer Choice { uint choice[]; };
layout(binding = 3) writeonly buffer Candidates { uint candidates[]; };  // of kAll (slots, V)
layout(std140, binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
layout(std140, binding = 5) uniform Settings { SearchSettings s; };

#include "choice.glsl"
#include "log_sum.glsl"

const float kWhole = 2147483648.0;  // the mass of all tokens
const uint kDigits = 256u;

shared uint bins[kDigits];
shared uint lane_sums[128];
shared uint picked_key;
shared uint picked_need;
shared uint picked_token;

// The softmax, and which tokens are left of it.
struct Row {
  uint base;  // of its scores
  float scale;  // 1 / temperature
  float peak;   // largest score over temperature
  float total;  // sum of exp(score / temperature - peak)
  // Kept: larger keys than `key`, equal ones up to token `last_tie`, and of those what reaches
  // `least` of the likeliest token's probability.
  uint key;
  uint last_tie;
  float least;
  // Kept of those: where `typical`, tokens whose surprise is at most so far from the entropy.
  bool typical;
  float log_kept;  // log of the sum of the kept ones' exp(...)
  float entropy;
  uint near_key;
};

float logit_of(Row r, uint v) { return scores[r.base + v] * r.scale; }

// exp(x - peak), 0 for what is impossible.
float weight_of(Row r, float x) { return is_negative_infinity(x) ? 0.0 : exp_nonpositive(x - r.peak); }

uint mass_of(Row r, uint v) { return uint(weight_of(r, logit_of(r, v)) / r.total * kWhole + 0.5); }

// The key by which typical sampling ranks: nearer to the entropy is larger.
uint near_key_of(Row r, float x) { return order_key(-abs(r.log_kept - (x - r.peak) - r.entropy)); }

bool is_kept(Row r, uint v) {
  const float x = logit_of(r, v);
  const uint key = order_key(x);
  if (is_negative_infinity(x) || key < r.key || (key == r.key && v > r.last_tie)) return false;
  return weight_of(r, x) >= r.least && (!r.typical || near_key_of(r, x) >= r.near_key);
}

// The score over temperature that has this key.
float key_score(uint key) {
  return uintBitsToFloat((key & 0x80000000u) != 0u ? key ^ 0x80000000u : ~key);
}

uint workgroup_total(uint value) {
  barrier();
  if (gl_LocalInvocationID.x == 0u) picked_need = 0u;
  barrier();
  atomicAdd(picked_need, value);
  barrier();
  const uint total = picked_need;
  barrier();
  return total;
}

uint kept_mass(Row r) {
  uint sum = 0u;
  for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
    if (is_kept(r, v)) sum += mass_of(r, v);
  }
  return workgroup_total(sum);
}

// At least so much of the kept mass.
uint share_of_mass(Row r, float share) {
  const uint mass = kept_mass(r);
  return clamp(uint(ceil(share * float(mass))), 1u, mass);
}

// The largest key such that kept tokens of at least that key have `need` in all, in mass or in
// number; in picked_need what those of just that key must give. A digit of eight bits at a time,
// from the top.
uint key_that_reaches(Row r, uint need, bool by_mass, bool by_distance) {
  uint prefix = 0u;
  for (uint shift = 32u; shift > 0u;) {
    shift -= 8u;
    barrier();
    for (uint b = gl_LocalInvocationID.x; b < kDigits; b += kLocalSize) bins[b] = 0u;
    barrier();
    for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
      if (!is_kept(r, v)) continue;
      const float x = logit_of(r, v);
      const uint key = by_distance ? near_key_of(r, x) : order_key(x);
      if (shift < 24u && (key >> (shift + 8u)) != prefix) continue;
      atomicAdd(bins[(key >> shift) & 255u], by_mass ? mass_of(r, v) : 1u);
    }
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
      uint digit = kDigits - 1u;
      uint left = need;
      // What is asked for may be more than there is, by rounding: then all of it.
      while (digit > 0u && bins[digit] < left) {
        left -= bins[digit];
        --digit;
      }
      picked_key = digit;
      picked_need = left;
    }
    barrier();
    prefix = (prefix << 8u) | picked_key;
    need = picked_need;
  }
  return prefix;
}

// The `count`-th token of just that key, by ascending token. Invocations take stretches in order.
uint nth_of_key(Row r, uint key, uint count) {
  const uint lane = gl_LocalInvocationID.x;
  const uint stretch = (p.search.vocab + kLocalSize - 1u) / kLocalSize;
  const uint end = min(p.search.vocab, (lane + 1u) * stretch);
  uint found = 0u;
  for (uint v = lane * stretch; v < end; ++v) found += order_key(logit_of(r, v)) == key ? 1u : 0u;
  barrier();
  lane_sums[lane] = found;
  if (lane == 0u) picked_token = VKF_NO_TOKEN;
  barrier();
  uint before = 0u;
  for (uint i = 0u; i < lane; ++i) before += lane_sums[i];
  if (before < count && count <= before + found) {
    for (uint v = lane * stretch; v < end && before < count; ++v) {
      if (order_key(logit_of(r, v)) == key && ++before == count) picked_token = v;
    }
  }
  barrier();
  return picked_token;
}

// Keeps the likeliest tokens: so many, or so much of their mass; of those that tie with the last,
// `ties` at most, or what the mass asks for.
Row keep_likeliest(Row r, uint need, bool by_mass, uint ties) {
  const uint key = key_that_reaches(r, need, by_mass, false);
  uint last_tie = r.last_tie;
  uint count = ties;
  if (by_mass) {
    const uint left = picked_need;
    // All of a key have one mass; the share is rounded up.
    const uint each = uint(exp_nonpositive(key_score(key) - r.peak) / r.total * kWhole + 0.5);
    count = each == 0u ? 1u : (left + each - 1u) / each;
  }
  if (count != 0u) {
    const uint nth = nth_of_key(r, key, count);
    last_tie = key == r.key ? min(nth, r.last_tie) : nth;
  } else if (key != r.key) {
    last_tie = VKF_NO_TOKEN;
  }
  r.key = key;
  r.last_tie = last_tie;
  return r;
}

// Locally typical sampling (Meister et al. 2023): of the kept tokens those whose surprise is nearest
// to the entropy, up to `share` of their mass.
Row keep_typical(Row r, float share) {
  float sum = 0.0;
  for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
    if (is_kept(r, v)) sum += weight_of(r, logit_of(r, v));
  }
  r.log_kept = log(workgroup_sum(sum));
  float surprise = 0.0;
  for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
    if (!is_kept(r, v)) continue;
    const float log_share = logit_of(r, v) - r.peak - r.log_kept;
    surprise -= exp_nonpositive(min(log_share, 0.0)) * log_share;
  }
  r.entropy = workgroup_sum(surprise);
  r.near_key = key_that_reaches(r, share_of_mass(r, share), true, true);
  r.typical = true;
  return r;
}

// The token whose stretch of the kept mass holds `place`.
uint token_at(Row r, uint place) {
  const uint lane = gl_LocalInvocationID.x;
  const uint stretch = (p.search.vocab + kLocalSize - 1u) / kLocalSize;
  const uint end = min(p.search.vocab, (lane + 1u) * stretch);
  uint mass = 0u;
  for (uint v = lane * stretch; v < end; ++v) mass += is_kept(r, v) ? mass_of(r, v) : 0u;
  barrier();
  lane_sums[lane] = mass;
  if (lane == 0u) picked_token = VKF_NO_TOKEN;
  barrier();
  uint before = 0u;
  for (uint i = 0u; i < lane; ++i) before += lane_sums[i];
  if (before <= place && place - before < mass) {
    for (uint v = lane * stretch; v < end && before <= place; ++v) {
      if (!is_kept(r, v)) continue;
      before += mass_of(r, v);
      if (before > place) picked_token = v;
    }
  }
  barrier();
  return picked_token;
}

// Token `turn` of those that the row generates, from 0.
uint draw(Row r, ChoiceRow c, uint turn) {
  const uvec4 number = philox(uvec2(c.seed_low, c.seed_high), uvec4(turn, c.stream, 0u, 0u));
  uint place, unused;
  umulExtended(number.x, kept_mass(r), place, unused);
  return token_at(r, place);
}

Row softmax_of(uint base, float temperature) {
  Row r;
  r.base = base;
  r.scale = temperature > 0.0 ? 1.0 / temperature : 1.0;
  r.key = 0u;
  r.last_tie = VKF_NO_TOKEN;
  r.least = 0.0;
  r.typical = false;
  r.log_kept = 0.0;
  r.entropy = 0.0;
  r.near_key = 0u;
  float peak = negative_infinity();
  for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
    const float x = logit_of(r, v);
    peak = x > peak ? x : peak;
  }
  r.peak = workgroup_max(peak);
  float sum = 0.0;
  for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) sum += weight_of(r, logit_of(r, v));
  r.total = workgroup_sum(sum);
  return r;
}

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const ChoiceRow c = choice_row(VKF_SLOT_ROW(slot_rows[slot >> 2u][slot & 3u]));
  const uint length = state.position + 1u, prompt = prompt_end(c, length);
  if (length < prompt) return;  // the prompt says what comes next
  const uint base = slot * p.search.vocab;
  const LogSum log_sum = log_sum_of(base, p.search.vocab);
  Row r = softmax_of(base, c.temperature);
  uint token = VKF_NO_TOKEN;
  if (!is_nan(log_sum.log) && !is_negative_infinity(r.peak)) {
    if (c.temperature == 0.0) {
      r = keep_likeliest(r, 1u, false, 1u);
    } else {
      if (c.top_k != 0u) r = keep_likeliest(r, c.top_k, false, 0u);
      if (c.top_p < 1.0) r = keep_likeliest(r, share_of_mass(r, c.top_p), true, 0u);
      r.least = c.min_p;
      if (c.typical_p < 1.0) r = keep_typical(r, c.typical_p);
    }
    if (kAll == 0u) token = draw(r, c, length - prompt);
  }
  if (kAll != 0u) {
    // What is left keeps its score over the temperature.
    for (uint v = gl_LocalInvocationID.x; v < p.search.vocab; v += kLocalSize) {
      const float x = is_kept(r, v) ? logit_of(r, v) : negative_infinity();
      candidates[base + v] = floatBitsToUint(is_nan(log_sum.log) ? log_sum.log : x);
    }
    return;
  }
  if (gl_LocalInvocationID.x != 0u) return;
  float value = token == VKF_NO_TOKEN ? negative_infinity()
                                      : log_probability(log_sum, logits[base + token]);
  if (is_nan(log_sum.log)) value = log_sum.log;
  candidates[slot * 2u] = floatBitsToUint(value);
  candidates[slot * 2u + 1u] = token;
}
