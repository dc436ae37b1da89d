#version 450
#extension GL_GOOGLE_include_directive : require
// computes: one direction of resampling a picture in fixed point; the last looks up model values
// shapes:   X pixels of 4 bytes, T tables -> Y (lines, width) pixels, or at last (3, lines, width)
// mapping:  an invocation owns a pixel of the result, a workgroup kLocalSize neighbors
// bounds:   the last workgroup is ragged
// requires: nothing (baseline)
// variants: picture_values_run__u32_none_f32
#include "picture.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_PICTURE_VALUES_CONSTANTS)
// 0: columns, from line to line; 1: rows, and the values of the model.

#include "rows.glsl"

layout(push_constant) uniform Params { PictureValuesParams p; };
layout(binding = 0) readonly buffer X { uint x[]; };
// 3 times 256 values by byte; for every target place its first source, count and first weight;
// weights.
layout(binding = 1) readonly buffer T { uint t[]; };
layout(binding = 2) writeonly buffer Y { uint y[]; };

const int kFractionBits = 22;  // of a weight, as on the host (image/resize.h)

void main() {
  const uint i = row_group_index() * kLocalSize + gl_LocalInvocationID.x;
  if (i >= p.width * p.lines) return;
  const uint column = i % p.width;
  const uint line = i / p.width;
  const uint entry = p.taps + 3u * (kLast != 0u ? line : column);
  const uint first = t[entry];
  const uint count = t[entry + 1u];
  const uint weights = t[entry + 2u];
  const uint step = kLast != 0u ? p.source_pitch : 1u;
  uint at = p.first_pixel + first * step + (kLast != 0u ? column : line * p.source_pitch);
  ivec3 sum = ivec3(1 << (kFractionBits - 1));
  for (uint k = 0u; k < count; ++k) {
    const uint pixel = x[at];
    sum += ivec3(uvec3(pixel, pixel >> 8, pixel >> 16) & 255u) * int(t[weights + k]);
    at += step;
  }
  uvec3 bytes = uvec3(clamp(sum >> kFractionBits, 0, 255));
  if (kLast == 0u) {
    y[i] = bytes.x | bytes.y << 8 | bytes.z << 16;
    return;
  }
  if (p.swapped != 0u) bytes = bytes.zyx;
  const uint plane = p.width * p.lines;
  for (uint channel = 0u; channel < 3u; ++channel) {
    y[p.first_value + channel * plane + i] = t[channel * 256u + bytes[channel]];
  }
}
