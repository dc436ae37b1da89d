#version 450
#extension GL_GOOGLE_include_directive : require
// computes: per chunk of keys j the state sum_j f_j [v_j | 1], with f_j = exp(F_j - c) in FAVOR+, c
//           the chunk's peak
// shapes:   X: v (B, H, S, Ev) by offset and stride, F: features (units, S, M) by strides, Mask (B,
//           ceil(S/32)) words -> States (units, chunks, M * (Ev + 1) + 2)
// mapping:  a workgroup owns kFeatures features of one chunk of one unit (x and y fold all three);
//           an invocation takes every kLocalSize-th column of v
// bounds:   S, M and Ev may be anything; Mask may be unused; a masked key is not read
// requires: nothing (baseline); kFeatures * 16 words of shared memory
// variants: linear_attention_state__f32_f32_f32
#extension GL_EXT_control_flow_attributes : require
#include "linear_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_LINEAR_STATE_CONSTANTS)
const uint kColumns = (kValueWidth + kLocalSize - 1u) / kLocalSize;
const uint kTile = 16u;  // keys

#include "float_bits.glsl"
#include "online_softmax.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { LinearStateParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer F { float f[]; };
layout(binding = 2) readonly buffer Mask { uint mask[]; };
layout(binding = 3) writeonly buffer States { float states[]; };

shared float feature_tile[kTile * kFeatures];  // (kTile, kFeatures)

bool is_kept(uint item, uint token) {
  if (kHasMask == 0u) return true;
  const uint words = (p.keys + 31u) >> 5u;
  return (mask[item * words + (token >> 5u)] & (1u << (token & 31u))) != 0u;
}

// The largest peak of the chunk's keys, the lowest float without any.
float chunk_peak(uint base, uint first, uint end) {
  float highest = kLowestFloat;
  for (uint j = first + gl_LocalInvocationID.x; j < end; j += kLocalSize) {
    highest = keep_max(highest, f[base + j * p.f_token_stride + p.features * p.f_feature_stride]);
  }
  feature_tile[gl_LocalInvocationID.x] = highest;
  barrier();
  [[dont_unroll]] for (uint i = 0u; i < kLocalSize; ++i) {
    highest = keep_max(highest, feature_tile[i]);
  }
  barrier();
  return highest;
}

void load_features(uint base, uvec2 keys, uint n0, float peak) {
  [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < kTile * kFeatures; i += kLocalSize) {
    const uint j = keys.x + i / kFeatures;
    const uint n = n0 + i % kFeatures;
    float value = 0.0;
    if (j < keys.y && n < p.features) {
      value = f[base + j * p.f_token_stride + n * p.f_feature_stride];
      const bool one = kHasOne != 0u && n + 1u == p.features;
      if (kFades != 0u && !one) value = exp_nonpositive(value - peak);
    }
    feature_tile[i] = value;
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint blocks = (p.features + kFeatures - 1u) / kFeatures;
  const uint block = row_group_index() % blocks;
  const uint chunk = row_group_index() / blocks % p.chunks;
  const uint local = row_group_index() / blocks / p.chunks;
  if (local >= p.units) return;
  const uint unit = p.first_unit + local;
  const uint item = unit / p.heads;
  const uint head = unit % p.heads;
  const uint base = p.f_offset + local * p.f_unit_stride + head * p.f_head_stride;
  const uint from = p.v.offset + item * p.v.batch_stride + head * p.v.head_stride;
  const uint first = min(chunk * p.chunk, p.keys);
  const uint end = min(first + p.chunk, p.keys);
  const uint n0 = block * kFeatures;
  const float peak = kFades != 0u ? chunk_peak(base, first, end) : 0.0;

  float sum[kFeatures * kColumns];
  float total[kFeatures];  // of the features alone
  [[unroll]] for (uint i = 0u; i < kFeatures * kColumns; ++i) sum[i] = 0.0;
  [[unroll]] for (uint n = 0u; n < kFeatures; ++n) total[n] = 0.0;
  for (uint tile = first; tile < end; tile += kTile) {
    if (kDirect == 0u) {
      load_features(base, uvec2(tile, end), n0, peak);
      barrier();
    }
    const uint keys = min(kTile, end - tile);
    [[dont_unroll]] for (uint j = 0u; j < keys; ++j) {
      if (!is_kept(item, tile + j)) continue;
      const uint row = from + (tile + j) * p.v.row_stride;
      const uint key = base + (tile + j) * p.f_token_stride;
      float v[kColumns];
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        v[c] = x[row + min(lane + c * kLocalSize, kValueWidth - 1u)];
      }
      [[unroll]] for (uint n = 0u; n < kFeatures; ++n) {
        const uint feature = min(n0 + n, p.features - 1u);
        const float weight =
            kDirect != 0u ? f[key + feature * p.f_feature_stride] : feature_tile[j * kFeatures + n];
        total[n] += weight;
        [[unroll]] for (uint c = 0u; c < kColumns; ++c) sum[n * kColumns + c] += weight * v[c];
      }
    }
    if (kDirect == 0u) barrier();
  }
  const uint line = kValueWidth + 1u;
  const uint to = p.out_offset + (local * p.chunks + chunk) * (p.features * line + 2u);
  [[unroll]] for (uint n = 0u; n < kFeatures; ++n) {
    const uint row = to + (n0 + n) * line;
    const bool inside = n0 + n < p.features;
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const uint column = lane + c * kLocalSize;
      if (inside && column < kValueWidth) states[row + column] = sum[n * kColumns + c];
    }
    if (inside && lane == 0u) states[row + kValueWidth] = total[n];
  }
  if (block == 0u && lane < 2u) states[to + p.features * line + lane] = peak;
}
