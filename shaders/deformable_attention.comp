#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = sum of softmax(scores) times bilinear samples of the values around each query's box
//           (Zhu et al., 2021)
// shapes:   Value (B, S, H * E), Samples (B, Q, 3 * H * L * P), Boxes (B, Q, 4) -> Y (B, Q, H * E)
// mapping:  one workgroup a query: it places all samples in shared memory, then an invocation takes
//           every kLocalSize-th column
// bounds:   every size may be anything; queries beyond the last are skipped; samples outside a grid
//           are 0
// requires: nothing (baseline); kSamples = H * L * P <= 1024, L <= 8
// variants: deformable_attention_row__f32_none_f32
#include "deformable_attention.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_DEFORMABLE_ATTENTION_CONSTANTS)

#include "float_bits.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { DeformableAttentionParams p; };
layout(binding = 0) readonly buffer Value { float value[]; };
layout(binding = 1) readonly buffer Samples { float samples[]; };
layout(binding = 2) readonly buffer Boxes { float boxes[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

shared float scores[kSamples];
shared float weights[kSamples];
shared vec2 places[kSamples];  // in tokens of the sample's grid

// Softmax of one sample over its head's. NaN goes through the sum.
float weight_of(uint i) {
  const uint count = p.levels * p.points;
  const uint first = i / count * count;
  float highest = scores[first];
  for (uint j = 1u; j < count; ++j) {
    const float other = scores[first + j];
    highest = other > highest || is_nan(other) ? other : highest;
  }
  float total = 0.0;
  for (uint j = 0u; j < count; ++j) total += exp_nonpositive(scores[first + j] - highest);
  return exp_nonpositive(scores[i] - highest) / total;
}

vec2 place_of(uint i, uint row) {
  const uint size = p.sizes[i / p.points % p.levels];
  const vec2 grid = vec2(float(size & 0xffffu), float(size >> 16u));
  const uint at = row * 3u * kSamples + 2u * i;
  const vec2 offset = vec2(samples[at], samples[at + 1u]);
  const vec2 center = vec2(boxes[4u * row], boxes[4u * row + 1u]);
  const vec2 extent = vec2(boxes[4u * row + 2u], boxes[4u * row + 3u]);
  return (center + offset / float(p.points) * extent * 0.5) * grid - 0.5;
}

// The values of column c around a place, of the grid whose first token is `first`.
float sample_at(vec2 place, uint first, uint height, uint width, uint c) {
  const bool inside =
      place.x > -1.0 && place.y > -1.0 && place.x < float(width) && place.y < float(height);
  if (!inside) return 0.0;
  const vec2 corner = floor(place);
  const vec2 part = place - corner;
  const int left = int(corner.x), top = int(corner.y);
  float sum = 0.0;
  for (int i = 0; i < 4; ++i) {
    const int column = left + (i & 1), line = top + (i >> 1);
    const float share =
        ((i & 1) != 0 ? part.x : 1.0 - part.x) * ((i >> 1) != 0 ? part.y : 1.0 - part.y);
    if (column >= 0 && line >= 0 && column < int(width) && line < int(height)) {
      sum += share * value[(first + uint(line) * width + uint(column)) * p.width + c];
    }
  }
  return sum;
}

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  for (uint i = lane; i < kSamples; i += kLocalSize) {
    scores[i] = samples[row * 3u * kSamples + 2u * kSamples + i];
  }
  barrier();
  for (uint i = lane; i < kSamples; i += kLocalSize) {
    const vec2 place = place_of(i, row);
    // A place that is no number makes a result that is none.
    const bool nowhere = is_nan(place.x) || is_nan(place.y);
    weights[i] = nowhere ? make_nan() : weight_of(i);
    places[i] = nowhere ? vec2(-2.0) : place;
  }
  barrier();
  const uint head_width = p.width / p.heads;
  for (uint c = lane; c < p.width; c += kLocalSize) {
    uint at = c / head_width * p.levels * p.points;
    uint first = row / p.queries * p.tokens;
    float sum = 0.0;
    for (uint l = 0u; l < p.levels; ++l) {
      const uint height = p.sizes[l] >> 16u, width = p.sizes[l] & 0xffffu;
      for (uint i = 0u; i < p.points; ++i, ++at) {
        sum += weights[at] * sample_at(places[at], first, height, width, c);
      }
      first += height * width;
    }
    y[row * p.width + c] = sum;
  }
}
