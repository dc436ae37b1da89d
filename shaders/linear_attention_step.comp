#version 450
#extension GL_GOOGLE_include_directive : require
// computes: one token of causal linear attention as a recurrence: state' = state + f_k [v | 1], y =
//           f_q state' / (its last column + epsilon); in FAVOR+ under the larger of the state's and
//           the key's peak
// shapes:   F: queries (slots, H, M), keys (slots, H, M + 1), values (slots, H, Ev), Ancestry (R,
//           C), States (R, 2, H * W), W = M * (Ev + 1) + 2 -> States, Y (slots, H * Ev)
// mapping:  a workgroup owns one slot (x) and head (y); an invocation every kLocalSize-th column of
//           [v | 1]
// bounds:   M and Ev may be anything; slots beyond the live ones are skipped
// requires: nothing (baseline)
// variants: linear_attention_step__f32_f32_f32
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_STEP_CONSTANTS)
const uint kTile = 64u;  // features
const uint kMostColumns = 257u;

#include "decode_state.h"
#include "float_bits.glsl"
#include "online_softmax.glsl"

layout(push_constant) uniform Params { LinearStepParams p; };
layout(binding = 0) readonly buffer F { float f[]; };
layout(binding = 1) readonly buffer Ancestry { uint ancestry[]; };
layout(binding = 2) buffer States { float states[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#include "parent_row.glsl"

shared float query_tile[kTile];
shared float key_tile[kTile];
shared float sums[kMostColumns];  // f_q state', by column

void main() {
  const uint slot = gl_WorkGroupID.x;
  if (slot >= state.live_slots) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint unit = slot * p.heads + gl_WorkGroupID.y;
  const uint entry = slot_rows[slot >> 2u][slot & 3u];
  const uint row = VKF_SLOT_ROW(entry);
  const uint position = state.position - VKF_SLOT_START(entry);
  const uint width = p.value_width + 1u;
  const uint words = p.features * width + 2u;
  const uint head_at = gl_WorkGroupID.y * words;
  const uint from = parent_line(row, position, p.lines, p.beams) * p.heads * words + head_at;
  const uint to = own_line(row, position) * p.heads * words + head_at;
  const uint key = p.k_offset + unit * (p.features + 1u);
  const bool fresh = position == 0u;

  float peak = 0.0;
  float fade = 1.0;
  if (kFades != 0u) {
    const float before = fresh ? kLowestFloat : states[from + words - 1u];
    peak = keep_max(before, f[key + p.features]);
    fade = online_fade(before, peak, 1.0);
  }
  for (uint column = lane; column < width; column += kLocalSize) sums[column] = 0.0;
  for (uint n0 = 0u; n0 < p.features; n0 += kTile) {
    const uint count = min(kTile, p.features - n0);
    barrier();
    for (uint n = lane; n < count; n += kLocalSize) {
      const bool one = kHasOne != 0u && n0 + n + 1u == p.features;
      const float value = f[key + n0 + n];
      key_tile[n] = kFades != 0u && !one ? exp_nonpositive(value - peak) : value;
      query_tile[n] = f[unit * p.features + n0 + n];
    }
    barrier();
    for (uint column = lane; column < width; column += kLocalSize) {
      const bool last = column == p.value_width;
      const float v = last ? 1.0 : f[p.v_offset + unit * p.value_width + column];
      float sum = sums[column];
      for (uint n = 0u; n < count; ++n) {
        const uint at = (n0 + n) * width + column;
        const bool one = kHasOne != 0u && n0 + n + 1u == p.features;
        const float before = fresh ? 0.0 : states[from + at];
        const float now = before * (one ? 1.0 : fade) + key_tile[n] * v;
        states[to + at] = now;
        sum += query_tile[n] * now;
      }
      sums[column] = sum;
    }
  }
  barrier();
  if (lane == 0u) states[to + words - 1u] = peak;
  for (uint column = lane; column < p.value_width; column += kLocalSize) {
    y[unit * p.value_width + column] = online_result(sums[column], sums[p.value_width] + p.epsilon);
  }
}
