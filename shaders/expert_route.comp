#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the K experts of each row with the best scores, a softmax (Shazeer et al., 2017) or
//           sigmoids with a bias for the choice alone and groups (DeepSeek-AI, 2024), and their
//           weights
// shapes:   Logits (R, X + A), Bias (X) -> Routes (R, K + A, 2): the expert, its weight's bits
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th expert and keeps its best
// bounds:   X may be anything from K on, groups divide it; rows beyond the last are skipped
// requires: X <= 1024, K + A <= 64, groups <= 64; subgroup arithmetic in the _subgroup variant
// variants: expert_route_row__f32_none_f32
//           expert_route_row__f32_none_f32_subgroup FEATURES subgroup
#include "experts.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_EXPERT_ROUTE_CONSTANTS)

#include "activation.glsl"
#include "reduce.glsl"
#include "row_best.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { ExpertRouteParams p; };
layout(binding = 0) readonly buffer Logits { float logits[]; };
layout(binding = 1) readonly buffer Bias { float bias[]; };
layout(binding = 2) writeonly buffer Routes { uint routes[]; };

// Loops over shared arrays are not to be unrolled: some compilers take the array's length for their
// count.
shared uint keys[kMostExperts];  // what experts are chosen by; 0: cannot be
shared uint group_keys[kMostExpertGroups];
shared uint chosen[kMostChoices];
shared float weights[kMostChoices];

uvec2 candidate_at(uint i) { return uvec2(keys[i], i); }
#include "row_kept.glsl"

float top;  // the largest logit of the row

float sigmoid_of(float x) { return is_nan(x) ? x : sigmoid_any(x); }

// exp(x - top): a softmax without its denominator.
float exp_below_top(float x) { return exp_of(x - top); }

float score_of(float x) { return kSigmoid != 0u ? sigmoid_of(x) : exp_below_top(x); }

// The two best of a group, added.
uint group_key(uint group, uint size) {
  uvec2 best = uvec2(0u);
  [[dont_unroll]] for (uint i = group * size; i < (group + 1u) * size; ++i) {
    best = keys[i] > best.x ? uvec2(keys[i], best.x) : uvec2(best.x, max(best.y, keys[i]));
  }
  return order_key(value_of_key(best.x) + value_of_key(best.y));
}

// Leaves keys to the experts of the best groups alone.
void drop_groups() {
  const uint size = p.experts / p.groups;
  barrier();
  [[dont_unroll]] for (uint g = gl_LocalInvocationID.x; g < p.groups; g += kLocalSize) {
    group_keys[g] = group_key(g, size);
  }
  barrier();
  [[dont_unroll]] for (uint g = gl_LocalInvocationID.x; g < p.groups; g += kLocalSize) {
    uint better = 0u;
    [[dont_unroll]] for (uint o = 0u; o < p.groups; ++o) {
      if (is_better(uvec2(group_keys[o], o), uvec2(group_keys[g], g))) ++better;
    }
    if (better < p.kept_groups) continue;
    [[dont_unroll]] for (uint i = g * size; i < (g + 1u) * size; ++i) keys[i] = kNoKey;
  }
  barrier();
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint base = row * (p.experts + p.always);
  float all = 1.0;
  if (kSigmoid == 0u) {
    top = uintBitsToFloat(0xff800000u);
    [[dont_unroll]] for (uint i = lane; i < p.experts; i += kLocalSize) {
      const float x = logits[base + i];
      top = x > top ? x : top;
    }
    top = workgroup_max(top);
    all = 0.0;
    [[dont_unroll]] for (uint i = lane; i < p.experts; i += kLocalSize) {
      all += exp_below_top(logits[base + i]);
    }
    all = workgroup_sum(all);
  }
  [[dont_unroll]] for (uint i = lane; i < p.experts; i += kLocalSize) {
    float choice = logits[base + i];
    if (kSigmoid != 0u) choice = sigmoid_of(choice);
    if (kBiased != 0u) {
      choice = (kSigmoid != 0u ? choice : exp_below_top(choice) / all) + bias[i];
    }
    keys[i] = order_key(choice);
  }
  if (p.groups > 1u) drop_groups();

  keep_best(false, no_best(), p.experts);
  float sum = 0.0;
  [[dont_unroll]] for (uint k = 0u; k < p.choices; ++k) {
    const uint expert = next_best(p.experts).y;
    const float score = score_of(logits[base + expert]);
    sum += score;
    if (lane == 0u) {
      chosen[k] = expert;
      weights[k] = score;
    }
  }
  barrier();
  const float divisor = kNormalize != 0u ? sum + p.least_sum : all;
  const uint entries = p.choices + p.always;
  [[dont_unroll]] for (uint k = lane; k < entries; k += kLocalSize) {
    const uint at = 2u * (row * entries + k);
    const bool picked = k < p.choices;
    const uint expert = picked ? chosen[k] : p.experts + k - p.choices;
    routes[at] = expert;
    routes[at + 1u] = floatBitsToUint(picked ? p.scale * (weights[k] / divisor)
                                             : sigmoid_of(logits[base + expert]));
  }
}
