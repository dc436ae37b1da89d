#version 450
#extension GL_GOOGLE_include_directive : require
// computes: the inverse of a monotonic rational quadratic spline (Durkan et al., 2019, "Neural
//           spline flows")
// shapes:   X (N), Params (N, 3K - 1): logits of K widths, of K heights, K - 1 raw derivatives -> Y
//           (N)
// mapping:  an invocation owns an element: it sums the exponentials of its bins, then walks over
//           them
// bounds:   N and K may be anything; elements beyond the last are skipped
// requires: nothing (baseline)
// variants: inverse_spline_element__f32_none_f32
#include "spline.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_WORKGROUP_CONSTANTS)

#include "activation.glsl"
#include "float_bits.glsl"
#include "rows.glsl"
#include "softplus.glsl"

layout(push_constant) uniform Params { SplineParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Params1 { float raw[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

// A bin of the function: where it begins, along the inputs and the outputs, and how long it is.
struct Bin {
  float left, width;
  float bottom, height;
  uint index;
};

// The largest of a row's K logits, and the sum of their exponentials less it.
void softmax_of(uint first, out float largest, out float sum) {
  largest = raw[first];
  for (uint i = 1u; i < p.bins; ++i) largest = max(largest, raw[first + i]);
  sum = 0.0;
  for (uint i = 0u; i < p.bins; ++i) sum += exp_of(raw[first + i] - largest);
}

// Of inner knots 1 to K - 1; those at both ends are 1.
float derivative(uint first, uint knot) {
  if (knot == 0u || knot == p.bins) return 1.0;
  return VKF_SPLINE_LEAST + softplus_any(raw[first + knot - 1u]);
}

// The bin whose outputs hold `value`.
Bin bin_of(float value, uint widths, uint heights) {
  float width_most, width_sum, height_most, height_sum;
  softmax_of(widths, width_most, width_sum);
  softmax_of(heights, height_most, height_sum);
  const float share = 1.0 - VKF_SPLINE_LEAST * float(p.bins);
  const float whole = 2.0 * p.bound;
  Bin found;
  float across = 0.0, up = 0.0;  // shares before the bin
  float left = -p.bound, bottom = -p.bound;
  for (uint i = 0u; i < p.bins; ++i) {
    across += VKF_SPLINE_LEAST + share * (exp_of(raw[widths + i] - width_most) / width_sum);
    up += VKF_SPLINE_LEAST + share * (exp_of(raw[heights + i] - height_most) / height_sum);
    const bool last = i + 1u == p.bins;
    const float right = last ? p.bound : whole * across - p.bound;
    const float top = last ? p.bound : whole * up - p.bound;
    if (i == 0u || value >= bottom) found = Bin(left, right - left, bottom, top - bottom, i);
    left = right;
    bottom = top;
  }
  return found;
}

void main() {
  const uint index = row_group_index() * kLocalSize + gl_LocalInvocationID.x;
  if (index >= p.count) return;
  const float value = x[index];
  if (is_nan(value) || value < -p.bound || value > p.bound) {
    y[index] = value;
    return;
  }
  const uint widths = index * (3u * p.bins - 1u);
  const Bin bin = bin_of(value, widths, widths + p.bins);
  const uint derivatives = widths + 2u * p.bins;
  const float from = derivative(derivatives, bin.index);
  const float to = derivative(derivatives, bin.index + 1u);
  // The root of a quadratic equation that lies within the bin.
  const float slope = bin.height / bin.width;
  const float above = value - bin.bottom;
  const float bend = above * (from + to - 2.0 * slope);
  const float a = bin.height * (slope - from) + bend;
  const float b = bin.height * from - bend;
  const float c = -slope * above;
  const float inside = b * b - 4.0 * a * c;
  const float root = 2.0 * c / (-b - sqrt(at_least(inside, 0.0)));
  y[index] = root * bin.width + bin.left;
}
