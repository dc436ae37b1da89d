#version 450
#extension GL_GOOGLE_include_directive : require
// computes: p.count steps of a GRU or LSTM layer from token p.first on: y[t] = cell(gates[t], y[t -
//           1])
// shapes:   Gates (B, T, G Hd), W (G Hd, Hd) in panels with its bias, Initial (B, St) -> Y (B, T,
//           St); G is 3 or 4, St is Hd or 2 Hd: [h | cell]
// mapping:  one workgroup a row of the batch; an invocation takes every kLocalSize-th unit
// bounds:   Hd may be odd; rows beyond the last are skipped; Initial may be unused
// requires: nothing (baseline); kWidth <= 2048
// variants: recurrence_run__f32_f32_f32
//           recurrence_run__f32_f16_f32 DEFINES VKF_WEIGHT_F16=1
//           recurrence_run__f32_blocks_f32 DEFINES VKF_BLOCKS=1
#include "recurrent.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_RECURRENCE_CONSTANTS)

#include "f16_words.glsl"
#include "matmul.h"
#include "recurrent_gates.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { RecurrenceParams p; };
layout(binding = 0) readonly buffer Gates { float gates[]; };
layout(binding = 1) readonly buffer W { uint w[]; };
layout(binding = 2) readonly buffer Initial { float initial[]; };
layout(binding = 3) buffer Y { float y[]; };

const uint kState = kWidth * (1u + kLstm);
const uint kColumns = kWidth * (3u + kLstm);

// Two copies of h: the one that a step reads and the one that it writes.
shared float h[2u * kWidth];  // (2, Hd)

#if VKF_BLOCKS
layout(binding = 1) readonly buffer WQuads { uvec4 w_quads[]; };
uint block_word(uint i) { return w[i]; }
uvec4 block_words(uint i) { return w_quads[i]; }
#include "weight_block_at.glsl"
#endif

// Weight (n, k), of W's transposed panels.
float weight(uint n, uint k) {
#if VKF_BLOCKS
  const uint blocks = (kWidth + kBlockSteps - 1u) / kBlockSteps;
  return block_weight(n / kPanelColumns * 4u * panel_vectors(blocks), k, n % kPanelColumns);
#else
  const uint at =
      n / kPanelColumns * (kPanelColumns * kWidth) + k * kPanelColumns + n % kPanelColumns;
#if VKF_WEIGHT_F16
  return unpack_f16_at(w[at >> 1], at);
#else
  return uintBitsToFloat(w[at]);
#endif
#endif
}

float bias_of(uint n) {
  return p.bias_offset == kMatmulNone ? 0.0 : uintBitsToFloat(w[p.bias_offset + n]);
}

// Part `part` of unit u's state before token t.
float state_before(uint row, uint t, uint part, uint u) {
  const uint at = part * kWidth + u;
  if (t > 0u) return y[(row * p.tokens + t - 1u) * kState + at];
  return p.has_initial != 0u ? initial[row * kState + at] : 0.0;
}

// What unit u's gates get of the state h[from ...].
vec4 from_state(uint u, uint from) {
  vec4 sum = vec4(bias_of(u), bias_of(kWidth + u), bias_of(2u * kWidth + u), 0.0);
  if (kLstm != 0u) sum.w = bias_of(3u * kWidth + u);
  for (uint k = 0u; k < kWidth; ++k) {
    const float x = h[from + k];
    sum.x += x * weight(u, k);
    sum.y += x * weight(kWidth + u, k);
    sum.z += x * weight(2u * kWidth + u, k);
    if (kLstm != 0u) sum.w += x * weight(3u * kWidth + u, k);
  }
  return sum;
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  for (uint u = lane; u < kWidth; u += kLocalSize) h[u] = state_before(row, p.first, 0u, u);
  barrier();
  for (uint s = 0u; s < p.count; ++s) {
    const uint from = (s & 1u) * kWidth;
    const uint t = p.first + s;
    const uint in_row = (row * p.tokens + t) * kColumns;
    const uint out_row = (row * p.tokens + t) * kState;
    for (uint u = lane; u < kWidth; u += kLocalSize) {
      vec4 x =
          vec4(gates[in_row + u], gates[in_row + kWidth + u], gates[in_row + 2u * kWidth + u], 0.0);
      if (kLstm != 0u) x.w = gates[in_row + 3u * kWidth + u];
      const float carry = kLstm != 0u ? state_before(row, t, 1u, u) : h[from + u];
      const vec2 next = cell_update(x, from_state(u, from), carry);
      h[kWidth - from + u] = next.x;
      y[out_row + u] = next.x;
      if (kLstm != 0u) y[out_row + kWidth + u] = next.y;
    }
    barrier();
  }
}
