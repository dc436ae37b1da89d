#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = act(bias + sum over a group's inputs and the kernel of x * weight); 0 outside x
// shapes:   X (B, C, H, W) or (B, H, W, C) by strides, Table (out, C/groups * kh * kw + 1): a row
//           of weights, then the bias -> Y (B, out, OH, OW) or (B, OH, OW, out) by strides; with
//           leading tokens before each image, X and Y (B, leading + H * W, C)
// mapping:  a workgroup owns kSpan neighboring positions of a line and kChunk output channels
//           (z), or copies one leading token; an invocation every kLocalSize-th of the channels
// bounds:   every size may be anything; spans beyond the last are skipped, the last of a line may
//           be ragged
// requires: nothing (baseline)
// variants: conv_span__f32_f32_f32
#extension GL_EXT_control_flow_attributes : require
#include "conv.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_CONV_CONSTANTS)

#include "activation.glsl"
#include "rows.glsl"

layout(push_constant) uniform Params { ConvParams p; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Table { float table[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

float pixel(uint line, uint at_x) {
  return at_x < p.picture.width ? x[line + at_x * p.picture.col_stride] : 0.0;
}

// Adds the kernel's line at `weight` over the image's line at `line`, whose first covered column
// is `left`, to kSpan positions. Positions that are a stride apart read the same pixels at
// neighboring taps. So the pixels move along in registers. A tap is one load of x and one weight.
void add_line(uint line, uint left, uint weight, inout float sum[kSpan]) {
  const uint stride = p.picture.stride_width;
  for (uint phase = 0u; phase < stride && phase < p.picture.kernel_width; ++phase) {
    float window[kSpan];
    window[0] = 0.0;
    [[unroll]] for (uint i = 1u; i < kSpan; ++i) {
      window[i] = pixel(line, left + phase + (i - 1u) * stride);
    }
    for (uint kx = phase; kx < p.picture.kernel_width; kx += stride) {
      [[unroll]] for (uint i = 1u; i < kSpan; ++i) window[i - 1u] = window[i];
      window[kSpan - 1u] = pixel(line, left + kx + (kSpan - 1u) * stride);
      const float w = table[weight + kx];
      [[unroll]] for (uint i = 0u; i < kSpan; ++i) sum[i] = fma(window[i], w, sum[i]);
    }
  }
}

void copy_token(uint token, uint first, uint last) {
  const uint batch = token / p.leading;
  const uint at = token % p.leading * p.channels;
  for (uint o = first; o < last; o += kLocalSize) {
    y[batch * p.y_batch_stride + at + o] = x[batch * p.picture.batch_stride + at + o];
  }
}

void main() {
  const uint index = row_group_index();
  if (index >= p.spans + p.copies) return;
  const uint first = gl_WorkGroupID.z * kChunk + gl_LocalInvocationID.x;
  const uint last = min(gl_WorkGroupID.z * kChunk + kChunk, p.channels);
  if (index >= p.spans) {
    copy_token(index - p.spans, first, last);
    return;
  }
  const uint line_spans = (p.picture.out_width + kSpan - 1u) / kSpan;
  const uint out_x = index % line_spans * kSpan;
  const uint out_y = index / line_spans % p.picture.out_height;
  const uint batch = index / line_spans / p.picture.out_height;
  // Left of and above the picture these wrap to huge numbers, so one comparison finds all outside.
  const uint top = out_y * p.picture.stride_height - p.picture.pad_top;
  const uint left = out_x * p.picture.stride_width - p.picture.pad_left;
  const uint taps = p.group_inputs * p.picture.kernel_height * p.picture.kernel_width;

  for (uint o = first; o < last; o += kLocalSize) {
    uint weight = o * (taps + 1u);
    float sum[kSpan];
    [[unroll]] for (uint i = 0u; i < kSpan; ++i) sum[i] = table[weight + taps];
    uint plane = p.picture.offset + batch * p.picture.batch_stride +
                 o / p.group_channels * p.group_inputs * p.picture.channel_stride;
    for (uint c = 0u; c < p.group_inputs; ++c) {
      for (uint ky = 0u; ky < p.picture.kernel_height; ++ky) {
        const uint at_y = top + ky;
        if (at_y < p.picture.height) {
          add_line(plane + at_y * p.picture.row_stride, left, weight, sum);
        }
        weight += p.picture.kernel_width;
      }
      plane += p.picture.channel_stride;
    }
    const uint at = p.y_offset + batch * p.y_batch_stride + out_y * p.y_row_stride +
                    out_x * p.y_col_stride + o * p.y_channel_stride;
    [[unroll]] for (uint i = 0u; i < kSpan; ++i) {
      if (out_x + i < p.picture.out_width) {
        y[at + i * p.y_col_stride] = apply_activation(sum[i], kActivation);
      }
    }
  }
}
