#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = sum over hash rounds of each round's result, by the softmax of its logsumexp
// shapes:   X (B, H, R, S, Ev + 2): results, highest score and sum of weights -> Y (B, S, H, Ev)
// mapping:  one workgroup a row (batch, token, head); an invocation owns every kLocalSize-th column
// bounds:   every size may be anything; rows beyond the last are skipped
// requires: nothing (baseline)
// variants: mix_rounds_row__f32_none_f32
#include "constants.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "float_bits.glsl"
#include "lsh.h"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { MixRoundsParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint head = row % p.heads;
  const uint token = row / p.heads % p.tokens;
  const uint batch = row / (p.heads * p.tokens);
  const uint pitch = p.width + 2u;
  const uint base = ((batch * p.heads + head) * p.rounds * p.tokens + token) * pitch;
  const uint step = p.tokens * pitch;
  float highest = kLowestFloat;
  for (uint r = 0u; r < p.rounds; ++r) highest = keep_max(highest, x[base + r * step + p.width]);
  for (uint e = gl_LocalInvocationID.x; e < p.width; e += kLocalSize) {
    float sum = 0.0, total = 0.0;
    for (uint r = 0u; r < p.rounds; ++r) {
      const uint at = base + r * step;
      const float weight = x[at + p.width + 1u] * online_fade(x[at + p.width], highest, 1.0);
      total += weight;
      sum = fma(weight, x[at + e], sum);
    }
    y[row * p.width + e] = online_result(sum, total);
  }
}
