#version 450
#extension GL_GOOGLE_include_directive : require
// computes: [c | a]: weights a = softmax over allowed keys of v.tanh(q + k), q.k or q itself, over
//           the temperature, times a Gaussian where the window has one; c = sum a value (Bahdanau
//           et al. 2014; Luong et al. 2015)
// shapes:   Q (R, A) and a center, KV (B, S, A + C), Aux (words): key mask (B, ceil(S/32)), v (A)
//           -> Y (R, C + S)
// mapping:  one workgroup a query; an invocation takes every kLocalSize-th key, then every such
//           value column
// bounds:   S, A and C may be anything; rows beyond the last are skipped; no allowed key gives
//           zeros
// requires: nothing (baseline); kStaged <= 2048; VKF_STEP: queries are slots
// variants: additive_attention_row__f32_f32_f32
//           additive_attention_step__f32_f32_f32 DEFINES VKF_STEP=1
#include "recurrent.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_ADDITIVE_ATTENTION_CONSTANTS)

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "activation.glsl"
#include "reduce.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { AdditiveAttentionParams p; };
layout(binding = 0) readonly buffer Q { float q[]; };
layout(binding = 1) readonly buffer KV { float kv[]; };
layout(binding = 2) readonly buffer Aux { uint aux[]; };
layout(binding = 3) coherent buffer Y { float y[]; };
#ifdef VKF_STEP
#include "decode_state.h"
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#endif

shared float q_row[kStaged];  // (A)

uint item;      // of the batch
uint position;  // of the query
float center;   // of the window, in tokens
uint q_at;      // where the query begins

// Words of the mask of one item.
uint mask_words() { return (p.keys + 31u) >> 5u; }

bool is_real(uint j) {
  return p.has_mask == 0u || (aux[item * mask_words() + (j >> 5u)] & (1u << (j & 31u))) != 0u;
}

// Real tokens before key j: its position in the sentence.
uint rank_of(uint j) {
  if (p.has_mask == 0u) return j;
  const uint base = item * mask_words();
  uint count = 0u;
  for (uint i = 0u; i < (j >> 5u); ++i) count += bitCount(aux[base + i]);
  return count + bitCount(aux[base + (j >> 5u)] & ((1u << (j & 31u)) - 1u));
}

float real_tokens() {
  if (p.has_mask == 0u) return float(p.keys);
  uint count = 0u;
  for (uint i = 0u; i < mask_words(); ++i) count += bitCount(aux[item * mask_words() + i]);
  return float(count);
}

// How far key j lies from the center, in tokens.
float distance_of(uint j) { return float(rank_of(j)) - center; }

bool in_window(uint j) {
  return p.window == kWindowNone || !(abs(distance_of(j)) > float(p.reach));
}

float key_score(uint j) {
  if (!is_real(j) || !in_window(j)) return negative_infinity();
  if (kScore == kScoreLocation) {
    const uint place = rank_of(j);
    return place < kWidth ? q[q_at + place] : negative_infinity();
  }
  const uint base = (item * p.keys + j) * p.kv_stride;
  float sum = 0.0;
  for (uint i = 0u; i < kWidth; ++i) {
    const float k = kv[base + i];
    if (kScore == kScoreDot) {
      sum += q_row[i] * k;
    } else {
      sum += uintBitsToFloat(aux[p.v_offset + i]) * apply_activation(q_row[i] + k, kActivationTanh);
    }
  }
  return sum;
}

// Luong's exp(-(s - p)^2 / (2 sigma^2)) with sigma = D / 2.
float gaussian(uint j) {
  if (p.window != kWindowPredictive) return 1.0;
  const float ratio = 2.0 * distance_of(j) / float(p.reach);
  return exp_nonpositive(-0.5 * ratio * ratio);
}

// Column c of the weighted sum of the values; weights lie at y[at ...].
float context_column(uint at, uint c) {
  const uint base = item * p.keys * p.kv_stride + p.kv_stride - p.value_width + c;
  float sum = 0.0;
  for (uint j = 0u; j < p.keys; ++j) {
    const float weight = y[at + j];
    const float value = kv[base + j * p.kv_stride];
    sum += is_masked_weight(weight) ? 0.0 : weight * value;
  }
  return sum;
}

void main() {
  const uint slot = row_group_index();
#ifdef VKF_STEP
  if (slot >= state.live_slots) return;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  item = VKF_SLOT_ROW(entry) / p.queries;
  position = state.position - VKF_SLOT_START(entry);
#else
  if (slot >= p.rows) return;
  item = slot / p.queries;
  position = p.first + slot % p.queries;
#endif
  const uint lane = gl_LocalInvocationID.x;
  q_at = slot * p.q_stride;
  if (kScore != kScoreLocation) {
    for (uint i = lane; i < kWidth; i += kLocalSize) q_row[i] = q[q_at + i];
  }
  center = float(position);
  if (p.window == kWindowPredictive) center = real_tokens() * q[q_at + kWidth];
  barrier();
  const uint row_at = slot * (p.value_width + p.keys);
  const uint at = row_at + p.value_width;
  float highest = kLowestFloat;
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float score = key_score(j);
    y[at + j] = score;
    highest = keep_max(highest, score);
  }
  if (p.raw_scores != 0u) return;
  highest = workgroup_max(highest);
  float total = 0.0;
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float weight = online_weight(y[at + j], highest, p.inverse_temperature);
    y[at + j] = weight;
    total += is_masked_weight(weight) ? 0.0 : weight;
  }
  total = workgroup_sum(total);
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    const float weight = y[at + j];
    if (!is_masked_weight(weight)) y[at + j] = online_result(weight, total) * gaussian(j);
  }
  memoryBarrierBuffer();
  barrier();
  for (uint c = lane; c < p.value_width; c += kLocalSize) y[row_at + c] = context_column(at, c);
  barrier();
  for (uint j = lane; j < p.keys; j += kLocalSize) {
    if (is_masked_weight(y[at + j])) y[at + j] = 0.0;
  }
}
